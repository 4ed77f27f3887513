// A map of objects, some of which go again: heap.js COUNT.
const map = new Map();
const count = Number(process.argv[2]);
for (let i = 0; i < count; i++) {
  map.set(i, {key: 'key' + i, values: [i, i * 2, i * 3, {last: i}]});
  if (i % 5 == 0) map.delete(i >> 1);
}
let sum = 0;
for (const entry of map.values()) {
  sum = (sum * 31 + entry.values[2] + entry.key.length + entry.values[3].last) % 1000000007;
}
console.log(sum, map.size);
