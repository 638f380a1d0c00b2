// What `show` sends: numbers and words as they are, large arrays as 256 shades of a picture.

/** @param {string} text a message of `tensorgrad_page.showing` */
export function values(text) {
  return decoded(JSON.parse(text));
}

/** Pictures become {shape, values: Float32Array}. */
export function decoded(value) {
  if (Array.isArray(value)) return value.map(decoded);
  if (value === null || typeof value !== 'object') return value;
  if (typeof value.data === 'string' && value.shape) {
    const { shape, low, high, data } = value;
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    return { shape, values: Float32Array.from(bytes, (byte) => low + (byte / 255) * (high - low)) };
  }
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, decoded(part)]));
}
