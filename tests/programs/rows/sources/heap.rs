// A B-tree of vectors, and a sort: heap COUNT.
use std::collections::BTreeMap;

fn main() {
    let count: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let mut tree = BTreeMap::new();
    for i in 0..count {
        tree.insert(i * 7919 % 1000003, vec![(i % 251) as u8; 200]);
    }
    let mut sum = 0u64;
    for (key, value) in &tree {
        sum = sum.wrapping_mul(31).wrapping_add(key + value[7] as u64 + value.len() as u64);
    }
    let mut state = 1u64;
    let mut numbers: Vec<u64> = (0..16 << 20)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 7
        })
        .collect();
    numbers.sort_unstable();
    let of_sort = numbers.iter().fold(0u64, |so_far, n| so_far.wrapping_mul(31).wrapping_add(*n));
    println!("{} {} {}", tree.len(), sum, of_sort);
}
