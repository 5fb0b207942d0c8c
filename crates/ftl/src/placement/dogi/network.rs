//! The network of DOGI: a perceptron with two hidden layers, which predicts the category of a page's lifetime.
//!
//! The shape is that of section 4.2.2 of the paper, about 1.6 K parameters. The paper's program gives the rest:
//! standardised features, ReLU, dropout of 0.4, cross entropy, Adam with a rate of 0.0003 and a weight decay of
//! 0.00001, batches of 128. Ten passes over the samples are the paper's. All operations are IEEE 754 or `libm`
//! in a fixed order, so a network is the same on every machine.

use fulgurite_base::Prng;

/// The number of features of a page.
pub(super) const FEATURES: usize = 6;
/// The number of categories of lifetimes.
pub(super) const CATEGORIES: usize = 10;

/// The features of a page, and the category of its lifetime, from 0.
pub(super) type Example = ([f32; FEATURES], usize);

const HIDDEN: usize = 32;
const PASSES: usize = 10;
const BATCH: usize = 128;
const RATE: f32 = 3e-4;
const DECAY: f32 = 1e-5;
/// The decay rates of the two moments of Adam (Kingma and Ba, 2015), and its guard against division by zero.
const MOMENTS: (f32, f32) = (0.9, 0.999);
const GUARD: f32 = 1e-8;
/// The share of hidden values that are dropped, in 65536ths: 0.4.
const DROPPED: u64 = 26_214;
const KEPT_SCALE: f32 = 1.0 / 0.6;

/// A weight with its gradient over the current batch and Adam's two moments.
#[derive(Clone, Copy, Debug, Default)]
struct Trained {
    gradient: f32,
    first: f32,
    second: f32,
}

/// A layer from `I` inputs to `O` outputs. Its rows are those of the inputs, and the last row is the bias.
#[derive(Clone, Debug)]
struct Layer<const I: usize, const O: usize> {
    weights: Vec<[f32; O]>,
    training: Vec<[Trained; O]>,
}

impl<const I: usize, const O: usize> Layer<I, O> {
    /// Creates a layer with weights drawn from ±1/√I, as PyTorch does.
    fn new(prng: &mut Prng) -> Layer<I, O> {
        let limit = 1.0 / (I as f32).sqrt();
        let mut weight = || (2.0 * prng.unit_f64() as f32 - 1.0) * limit;
        let weights = (0..=I).map(|_| std::array::from_fn(|_| weight())).collect();
        Layer { weights, training: vec![[Trained::default(); O]; I + 1] }
    }

    #[inline]
    fn forward(&self, inputs: &[f32; I]) -> [f32; O] {
        let mut outputs = self.weights[I];
        for (input, row) in inputs.iter().zip(&self.weights) {
            for (output, weight) in outputs.iter_mut().zip(row) {
                *output += input * weight;
            }
        }
        outputs
    }

    /// Adds the gradient of one example, whose outputs have the error `error`. Returns the inputs' error.
    fn backward(&mut self, inputs: &[f32; I], error: &[f32; O]) -> [f32; I] {
        let mut back = [0.0; I];
        for (at, row) in self.training.iter_mut().enumerate() {
            let input = inputs.get(at).copied().unwrap_or(1.0);
            for (trained, error) in row.iter_mut().zip(error) {
                trained.gradient += input * error;
            }
        }
        for (back, row) in back.iter_mut().zip(&self.weights) {
            *back = dot(row, error);
        }
        back
    }

    /// Moves all weights by one step of Adam. `share` is one over the number of examples in the batch, and
    /// `unbias` corrects the two moments, which begin at zero.
    fn step(&mut self, share: f32, unbias: (f32, f32)) {
        for (weight, trained) in self.weights.iter_mut().zip(&mut self.training) {
            for (weight, trained) in weight.iter_mut().zip(trained) {
                let gradient = std::mem::take(&mut trained.gradient) * share + DECAY * *weight;
                trained.first = MOMENTS.0 * trained.first + (1.0 - MOMENTS.0) * gradient;
                trained.second = MOMENTS.1 * trained.second + (1.0 - MOMENTS.1) * gradient * gradient;
                let (first, second) = (trained.first * unbias.0, trained.second * unbias.1);
                *weight -= RATE * first / (second.sqrt() + GUARD);
            }
        }
    }
}

/// A trained network.
#[derive(Clone, Debug)]
pub(super) struct Network {
    /// The mean of each feature over the examples, and one over its standard deviation.
    standard: [(f32, f32); FEATURES],
    first: Layer<FEATURES, HIDDEN>,
    second: Layer<HIDDEN, HIDDEN>,
    last: Layer<HIDDEN, CATEGORIES>,
}

impl Network {
    /// Trains a network on examples, of which there must be one at least.
    pub(super) fn trained(examples: &[Example], prng: &mut Prng) -> Network {
        let mut network = Network {
            standard: standard(examples),
            first: Layer::new(prng),
            second: Layer::new(prng),
            last: Layer::new(prng),
        };
        let mut order: Vec<usize> = (0..examples.len()).collect();
        let mut powers = (1.0, 1.0);
        for _ in 0..PASSES {
            prng.shuffle(&mut order);
            for batch in order.chunks(BATCH) {
                batch.iter().for_each(|at| network.learn(&examples[*at], prng));
                powers = (powers.0 * MOMENTS.0, powers.1 * MOMENTS.1);
                let (share, unbias) =
                    (1.0 / batch.len() as f32, (1.0 / (1.0 - powers.0), 1.0 / (1.0 - powers.1)));
                network.first.step(share, unbias);
                network.second.step(share, unbias);
                network.last.step(share, unbias);
            }
        }
        network
    }

    /// Returns the likeliest category of a page, from 0.
    #[inline]
    pub(super) fn category(&self, features: &[f32; FEATURES]) -> usize {
        let hidden = self.first.forward(&self.standardised(features)).map(|value| value.max(0.0));
        let hidden = self.second.forward(&hidden).map(|value| value.max(0.0));
        let outputs = self.last.forward(&hidden);
        let likeliest = (0..CATEGORIES).max_by(|a, b| outputs[*a].total_cmp(&outputs[*b]));
        likeliest.unwrap_or(0)
    }

    fn standardised(&self, features: &[f32; FEATURES]) -> [f32; FEATURES] {
        std::array::from_fn(|at| (features[at] - self.standard[at].0) * self.standard[at].1)
    }

    /// Adds the gradient of one example to that of its batch.
    fn learn(&mut self, (features, category): &Example, prng: &mut Prng) {
        let inputs = self.standardised(features);
        let kept = [dropout(prng), dropout(prng)];
        let mut hidden = [self.first.forward(&inputs), [0.0; HIDDEN]];
        apply(&mut hidden[0], &kept[0]);
        hidden[1] = self.second.forward(&hidden[0]);
        apply(&mut hidden[1], &kept[1]);
        let outputs = self.last.forward(&hidden[1]);
        let most = outputs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let mut error = outputs.map(|output| libm::expf(output - most));
        let sum: f32 = error.iter().sum();
        error.iter_mut().for_each(|share| *share /= sum);
        error[*category] -= 1.0;
        let mut back = self.last.backward(&hidden[1], &error);
        revert(&mut back, &hidden[1]);
        let mut back = self.second.backward(&hidden[0], &back);
        revert(&mut back, &hidden[0]);
        self.first.backward(&inputs, &back);
    }
}

/// Returns the scalar product, summed in four parts, which a processor can add at the same time.
fn dot<const N: usize>(a: &[f32; N], b: &[f32; N]) -> f32 {
    let products: [f32; N] = std::array::from_fn(|at| a[at] * b[at]);
    let mut parts = [0.0; 4];
    for (at, product) in products.iter().enumerate() {
        parts[at % 4] += product;
    }
    parts[0] + parts[1] + (parts[2] + parts[3])
}

/// Draws which hidden values are kept.
fn dropout(prng: &mut Prng) -> [bool; HIDDEN] {
    let mut kept = [false; HIDDEN];
    for four in kept.chunks_mut(4) {
        let bits = prng.next_u64();
        for (at, kept) in four.iter_mut().enumerate() {
            *kept = (bits >> (16 * at)) & 0xffff >= DROPPED;
        }
    }
    kept
}

/// Applies ReLU and dropout. The values that are kept grow, so that their mean stays.
fn apply(values: &mut [f32; HIDDEN], kept: &[bool; HIDDEN]) {
    for (value, kept) in values.iter_mut().zip(kept) {
        *value = if *kept { value.max(0.0) * KEPT_SCALE } else { 0.0 };
    }
}

/// Passes an error back through dropout and ReLU; `values` are their outputs.
fn revert(error: &mut [f32; HIDDEN], values: &[f32; HIDDEN]) {
    for (error, value) in error.iter_mut().zip(values) {
        *error = if *value > 0.0 { *error * KEPT_SCALE } else { 0.0 };
    }
}

/// Returns the mean of each feature, and one over its standard deviation; one for a feature that is constant.
fn standard(examples: &[Example]) -> [(f32, f32); FEATURES] {
    std::array::from_fn(|at| {
        let values = || examples.iter().map(|(features, _)| f64::from(features[at]));
        let count = examples.len() as f64;
        let mean = values().sum::<f64>() / count;
        let deviation = (values().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count).sqrt();
        (mean as f32, if deviation > 0.0 { (1.0 / deviation) as f32 } else { 1.0 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns examples whose category is the integer part of one feature. Another feature is noise, the rest is
    /// constant.
    fn examples(count: usize, prng: &mut Prng) -> Vec<Example> {
        let mut draw = || (10.0 * prng.unit_f64()) as f32;
        let one = |_| {
            let (informative, noise) = (draw(), draw());
            ([7.0, noise, 7.0, 1_000.0 * informative, 7.0, 7.0], informative as usize)
        };
        (0..count).map(one).collect()
    }

    /// The rule: a network finds the feature on which the category depends, and predicts pages that it has not
    /// seen.
    #[test]
    fn a_network_learns_what_decides_the_category() {
        let mut prng = Prng::new(3, "network");
        let (seen, unseen) = (examples(20_000, &mut prng), examples(1_000, &mut prng));
        let network = Network::trained(&seen, &mut prng);
        let right =
            |of: &[Example]| of.iter().filter(|(x, category)| network.category(x) == *category).count();
        // A guess is right in a tenth of the pages.
        assert!(right(&unseen) > 700, "{} of 1,000", right(&unseen));
    }

    /// The rule: the gradient is the derivative of the cross entropy.
    #[test]
    fn the_gradient_is_that_of_the_cross_entropy() {
        let mut prng = Prng::new(5, "gradient");
        let mut layer = Layer::<3, 4>::new(&mut prng);
        let (inputs, factor) = ([0.3, -0.7, 0.9], [0.5, -1.0, 2.0, 0.25]);
        // The loss is a sum with factors, so the factors are the outputs' error.
        let loss = |layer: &Layer<3, 4>, inputs: &[f32; 3]| -> f32 {
            layer.forward(inputs).iter().zip(factor).map(|(output, factor)| output * factor).sum()
        };
        let back = layer.backward(&inputs, &factor);
        let (before, small) = (loss(&layer, &inputs), 1e-2);
        for at in 0..3 {
            let mut moved = inputs;
            moved[at] += small;
            assert!(((loss(&layer, &moved) - before) / small - back[at]).abs() < 1e-3);
        }
        for (at, output) in [(0, 0), (2, 3), (3, 1)] {
            let mut moved = layer.clone();
            moved.weights[at][output] += small;
            let slope = (loss(&moved, &inputs) - before) / small;
            assert!((slope - layer.training[at][output].gradient).abs() < 1e-3, "{at}, {output}");
        }
    }
}
