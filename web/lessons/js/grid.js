// Small pictures of numbers: rows, columns, and perhaps channels.

/** Nested lists as pictures are: {shape, values}. */
export function grid(value) {
  if (!Array.isArray(value)) return value;
  const shape = [];
  for (let part = value; Array.isArray(part); part = part[0]) shape.push(part.length);
  return { shape, values: Float32Array.from(value.flat(Infinity), (number) => number ?? NaN) };
}

/** One of several pictures that come one after the other. */
export function tile(pictures, i) {
  const { shape, values } = grid(pictures);
  const size = shape.at(-1) * shape.at(-2);
  return { shape: shape.slice(-2), values: values.subarray(i * size, (i + 1) * size) };
}

/** One channel of a picture, drawn small; `scale` is the value with the fullest colour. */
export function paint(canvas, { shape, values }, channel, middle, scale, colours) {
  const [height, width, channels = 1] = shape;
  if (canvas.width !== width) Object.assign(canvas, { width, height });
  const context = canvas.getContext('2d');
  const picture = context.createImageData(width, height);
  for (let i = 0; i < width * height; i++) {
    const part = (values[i * channels + channel] - middle) / scale;
    picture.data.set(colours[Math.round(127 + 127 * Math.max(-1, Math.min(1, part || 0)))], i * 4);
  }
  context.putImageData(picture, 0, 0);
}

/** The largest size of a number in one channel. */
export function largest({ shape, values }, channel) {
  const channels = shape[2] ?? 1;
  let most = 1e-6;
  for (let i = channel; i < values.length; i += channels) most = Math.max(most, Math.abs(values[i]));
  return most;
}
