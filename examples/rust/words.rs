// Counts words: a HashMap and a BTreeMap of Strings, larger than the memory it is given.
use std::collections::{BTreeMap, HashMap};

fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn main() {
    let words: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let mut state = 88172645463325252;
    let mut seen: HashMap<String, u32> = HashMap::new();
    for _ in 0..words {
        *seen.entry(format!("word-{:06}", next(&mut state) % (words / 2))).or_insert(0) += 1;
    }
    let mut by_count: BTreeMap<(u32, String), usize> = BTreeMap::new();
    for (word, count) in &seen {
        by_count.insert((*count, word.clone()), word.len());
    }
    let mut sorted: Vec<&String> = seen.keys().collect();
    sorted.sort();
    let checksum = sorted.iter().fold(0u64, |sum, word| word.bytes().fold(sum, |s, b| s.wrapping_mul(31).wrapping_add(b as u64)));
    let (top, _) = by_count.iter().next_back().unwrap();
    println!("{} words, the most frequent {} times: {}, checksum {:016x}", seen.len(), top.0, top.1, checksum);
}
