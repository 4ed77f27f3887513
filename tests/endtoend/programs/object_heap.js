// Objects of a garbage-collected heap: pages of a few hundred KiB, reserved without access.
const lists = [];
let sum = 0;
for (let i = 0; i < 100; i++) {
  const objects = [];
  for (let at = 0; at < 15000; at++) objects.push({number: i * at, text: 'x' + (at % 10)});
  lists.push(objects);
}
for (let round = 0; round < 2; round++) {
  for (const objects of lists)
    for (const object of objects) sum = (sum + object.number * 3 + object.text.length) % 1000000007;
  for (let i = round; i < lists.length; i += 3) lists[i] = lists[i].map((object) => ({...object}));
}
console.log(sum);
