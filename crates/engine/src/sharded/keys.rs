//! The shards of keys.

use fulgurite_base::fnv1a;

/// Returns the index of the shard that holds a key.
pub(crate) fn shard_of(key: &[u8], shards: usize) -> usize {
    match shards {
        1 => 0,
        shards => (fnv1a(key) % shards as u64) as usize,
    }
}

/// Returns the shards that hold keys, in ascending order, each with the places of its keys.
pub(crate) fn by_shard(keys: &[&[u8]], shards: usize) -> Vec<(usize, Vec<usize>)> {
    let mut places = vec![Vec::new(); shards];
    keys.iter().enumerate().for_each(|(place, key)| places[shard_of(key, shards)].push(place));
    places.into_iter().enumerate().filter(|(_, places)| !places.is_empty()).collect()
}
