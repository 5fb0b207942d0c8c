//! Reads the measured latencies of a drive from a folder with fio's results, one file of `--output-format=json`
//! for each rate. Job `probe` gives the response times, and job `load` the rate: see the how-to of real drives.
//!
//! Source: the JSON of fio 3.33. Percentiles are those of `lat_ns` (`lat_percentiles=1`), which counts from the
//! submission, or else of `clat_ns`.

use super::measured::{FIGURES, Point, need_two};
use fulgurite_files::obstacle;
use fulgurite_stack::{PROBE_WRITES_S, StackError};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The percentiles of a point in fio's spelling, in the order of the figures.
const PERCENTILES: [&str; 4] = ["50.000000", "90.000000", "99.000000", "99.900000"];

/// Returns the points of the files in a folder, by rate.
pub(super) fn read(folder: &Path) -> Result<Vec<Point>, StackError> {
    let refused = |why: String| StackError::request(format!("SOURCE {}: {why}", folder.display()));
    let entries = std::fs::read_dir(folder).map_err(|error| refused(obstacle(folder, &error)))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect();
    paths.sort();
    let mut points = BTreeMap::new();
    for path in paths {
        let refused = |why: &str| {
            StackError::request(format!(
                "SOURCE {}: {why}; accepted: fio's JSON of a job named probe and one named load, with rate_iops",
                path.display()
            ))
        };
        let text = std::fs::read_to_string(&path).map_err(|error| refused(&obstacle(&path, &error)))?;
        let point = point(&text).map_err(|why| refused(&why))?;
        if points.insert(point.offered_ops_s, point).is_some() {
            return Err(refused("another file has the same rate"));
        }
    }
    need_two(points.into_values().collect())
        .map_err(|why| refused(format!("{why}; accepted: a folder with a .json of fio for each rate")))
}

/// Returns the point in a file of fio.
fn point(text: &str) -> Result<Point, String> {
    // fio prints its notes before the JSON.
    let json = &text[text.find('{').ok_or("it has no JSON")?..];
    let file: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let jobs = file["jobs"].as_array().ok_or("it has no jobs")?;
    let named = |name: &'static str| {
        let of_name = move |job: &&Value| job["jobname"].as_str().is_some_and(|job| job.starts_with(name));
        jobs.iter().filter(of_name)
    };
    let probe = named("probe").next().ok_or("it has no job named probe")?;
    let (mut offered, mut done) = (0.0, 0.0);
    for job in named("load") {
        offered += rate(job, &file["global options"])?;
        done += job["write"]["iops"].as_f64().unwrap_or(0.0) + job["read"]["iops"].as_f64().unwrap_or(0.0);
    }
    if offered == 0.0 {
        return Err("it has no job named load".to_owned());
    }
    let mut figures = [None; FIGURES];
    figures[0] = Some(done);
    for (at, side) in ["read", "write"].into_iter().enumerate() {
        let of = |kind: &str| Some(probe[side][kind]["percentile"].as_object()?.clone());
        let percentiles = of("lat_ns").or_else(|| of("clat_ns"));
        let percentiles = percentiles.ok_or_else(|| format!("its probe has no percentiles of {side}s"))?;
        for (place, percentile) in PERCENTILES.into_iter().enumerate() {
            figures[1 + at * PERCENTILES.len() + place] = percentiles.get(percentile).and_then(Value::as_f64);
        }
    }
    Ok(Point { offered_ops_s: (offered + PROBE_WRITES_S).round() as u64, figures })
}

/// Returns the requests per second that a job offers.
fn rate(job: &Value, global: &Value) -> Result<f64, String> {
    let option = |name: &str| job["job options"][name].as_str().or_else(|| global[name].as_str());
    let text = option("rate_iops").ok_or("its load has no rate_iops")?;
    // The rates of reads, writes and trims; one rate is that of each. A load only writes.
    let mut rates = text.split(',');
    let (reads, writes) = (rates.next().unwrap_or_default(), rates.next());
    let rate = writes.unwrap_or(reads).trim().to_lowercase();
    let (digits, scale) = match rate.strip_suffix('k') {
        Some(digits) => (digits, 1024.0),
        None => (rate.as_str(), 1.0),
    };
    let rate: f64 = digits.parse().map_err(|_| format!("rate_iops={text} is not a rate"))?;
    // With group_reporting one entry stands for all jobs.
    let is_grouped = option("group_reporting").is_some();
    let jobs = option("numjobs").filter(|_| is_grouped).and_then(|jobs| jobs.parse().ok()).unwrap_or(1.0);
    Ok(rate * scale * jobs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percentiles(scale: u64) -> String {
        let value = |at: usize| scale * (at as u64 + 1);
        let pairs: Vec<String> =
            PERCENTILES.iter().enumerate().map(|(at, name)| format!("\"{name}\": {}", value(at))).collect();
        format!("{{\"percentile\": {{{}}}}}", pairs.join(","))
    }

    fn file(load: &str) -> String {
        let [reads, writes, others] = [1_000, 7_000, 9].map(percentiles);
        format!(
            "fio: a note\n{{\"global options\": {{}}, \"jobs\": [{{\"jobname\": \"probe\", \"job options\": {{}}, \
             \"read\": {{\"lat_ns\": {reads}, \"clat_ns\": {others}}}, \
             \"write\": {{\"clat_ns\": {writes}}}}}, {load}]}}"
        )
    }

    fn load(options: &str, iops: f64) -> String {
        format!(
            "{{\"jobname\": \"load\", \"job options\": {{{options}}}, \"read\": {{\"iops\": 0}}, \
             \"write\": {{\"iops\": {iops}}}}}"
        )
    }

    /// The offered rate is that of all load jobs and of the probe's writes; latencies count from the submission if
    /// fio tells them.
    #[test]
    fn a_point_is_the_probe_beside_all_load_jobs() {
        let two = format!(
            "{}, {}",
            load("\"rate_iops\": \"2000\"", 1990.0),
            load("\"rate_iops\": \"0,3k\"", 2500.0)
        );
        let point = point(&file(&two)).unwrap();
        assert_eq!(point.offered_ops_s, 2_000 + 3 * 1024 + 5_000);
        let [done, r50, r90, _, r999, w50, .., w999] = point.figures;
        assert_eq!([done, r50, r90, r999], [4_490.0, 1_000.0, 2_000.0, 4_000.0].map(Some));
        assert_eq!([w50, w999], [7_000.0, 28_000.0].map(Some));
        let grouped = load("\"rate_iops\": \"500\", \"numjobs\": \"6\", \"group_reporting\": \"1\"", 3_000.0);
        assert_eq!(super::point(&file(&grouped)).unwrap().offered_ops_s, 8_000);
    }

    #[test]
    fn a_file_without_what_is_needed_says_what_is_missing() {
        for (text, why) in [
            ("fio: bad", "it has no JSON"),
            ("{}", "it has no jobs"),
            ("{\"jobs\": []}", "it has no job named probe"),
            (&file(&load("", 1.0)), "its load has no rate_iops"),
            (&file(&load("\"rate_iops\": \"fast\"", 1.0)), "rate_iops=fast is not a rate"),
            (&file("{\"jobname\": \"other\"}"), "it has no job named load"),
        ] {
            assert_eq!(point(text).unwrap_err(), why, "{text}");
        }
    }
}
