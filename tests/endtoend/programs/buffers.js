// Buffers outside of V8's heap, in which worker threads sort and sum.
const all = [];
for (let b = 0; b < 24; ++b) {
  const buffer = Buffer.allocUnsafeSlow(4 << 20);
  for (let i = 0; i < buffer.length; i += 4) buffer.writeUInt32LE(Math.imul(i + b, 2654435761) >>> 0, i);
  all.push(buffer);
}
let state = 12345, sum = 0;
function next() { state ^= state << 13; state ^= state >>> 17; state ^= state << 5; return state >>> 0; }
for (let i = 0; i < 60000; ++i) {
  const buffer = all[next() % all.length], at = (next() % (buffer.length / 4)) * 4;
  const value = buffer.readUInt32LE(at);
  buffer.writeUInt32LE((value + i) >>> 0, at);
  sum = (Math.imul(sum, 31) + value) >>> 0;
}
const crypto = require("crypto");
const words = new Uint32Array(all[3].buffer, all[3].byteOffset, all[3].length / 4);
words.sort();
const hash = crypto.createHash("sha256");
for (const buffer of all) hash.update(buffer);
console.log(sum.toString(16), hash.digest("hex"), all[5].indexOf(all[5].subarray(1000000, 1000016)));
