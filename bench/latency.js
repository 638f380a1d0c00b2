// What a step costs in the browser without any library: some small kernels, an upload, four bytes read back. ?steps=150
// Posts milliseconds, the median and the middle eight tenths, of steps that are read each, and of groups of ten.
const query = new URLSearchParams(location.search);
const steps = Number(query.get('steps') ?? 150), WARMUP = 10;
const post = (key, value) => fetch('/r', { method: 'POST', body: JSON.stringify([key, value]) });

function middle(times) {
  const sorted = [...times].sort((a, b) => a - b), at = share => +sorted[Math.floor(share * (sorted.length - 1))].toFixed(3);
  return [at(0.5), at(0.1), at(0.9)];
}

const CODE = `
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) i: vec3<u32>) { y[i.x] = x[i.x] * 1.001 + 1.0; }`;

try {
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: 'high-performance' });
  await post('adapter', [adapter.info.vendor, adapter.info.architecture, adapter.info.description].join(' '));
  const device = await adapter.requestDevice(), { queue } = device, U = GPUBufferUsage;
  const module = device.createShaderModule({ code: CODE });
  const pipeline = await device.createComputePipelineAsync({ layout: 'auto', compute: { module } });
  const buffer = (size, usage = U.STORAGE | U.COPY_SRC | U.COPY_DST) => device.createBuffer({ size, usage });
  const [input, a, b] = [buffer(1 << 20), buffer(1 << 16), buffer(1 << 16)];
  const landing = buffer(256, U.MAP_READ | U.COPY_DST), host = new Uint8Array(1 << 20);
  const group = (from, to) => device.createBindGroup({
    layout: pipeline.getBindGroupLayout(0), entries: [from, to].map((b, binding) => ({ binding, resource: { buffer: b } })) });
  const groups = [group(a, b), group(b, a)];

  function submit(kernels, nbytes, read) {
    if (nbytes) queue.writeBuffer(input, 0, host, 0, nbytes);
    const encoder = device.createCommandEncoder(), pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    for (let i = 0; i < kernels; i++) {
      pass.setBindGroup(0, groups[i % 2]);
      pass.dispatchWorkgroups(16);
    }
    pass.end();
    if (read) encoder.copyBufferToBuffer(a, 0, landing, 0, 4);
    queue.submit([encoder.finish()]);
  }

  /** As the library does: a map is noticed sooner when the GPU process is asked something meanwhile. */
  async function read() {
    let mapped = false;
    const map = landing.mapAsync(GPUMapMode.READ).then(() => { mapped = true; });
    while (!mapped) {
      device.pushErrorScope('validation');
      await device.popErrorScope();
    }
    await map;
    landing.unmap();
  }

  for (const [kernels, nbytes] of [[0, 0], [9, 0], [20, 0], [40, 0], [20, 256], [20, 200_000], [20, 400_000]]) {
    const each = [], tenths = [];
    for (let i = 0; i < steps + WARMUP; i++) {
      const from = performance.now();
      submit(kernels, nbytes, true);
      await read();
      if (i >= WARMUP) each.push(performance.now() - from);
    }
    for (let i = 0; i < steps / 5; i++) {
      const from = performance.now();
      for (let k = 0; k < 10; k++) submit(kernels, nbytes, k === 9);
      await read();
      tenths.push((performance.now() - from) / 10);
    }
    await post(`${kernels} kernels, ${nbytes} bytes`, { 'each read': middle(each), 'every tenth read': middle(tenths) });
  }
  await post('DONE', 1);
} catch (error) {
  await post('FATAL', String(error?.stack ?? error));
}
