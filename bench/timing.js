// What the pages share that time kernels and compare their results with plain kernels'.
// ?only=TEXT takes the jobs whose name has the text in it, ?seconds=400 is for all of them.
const query = new URLSearchParams(location.search);
const budget = 1000 * Number(query.get("seconds") ?? 400);
const effort = Number(query.get("ms") ?? 6); // GPU time of one measurement
const started = performance.now();

const LIMITS = ["maxComputeInvocationsPerWorkgroup", "maxComputeWorkgroupSizeX", "maxComputeWorkgroupStorageSize", "maxStorageBufferBindingSize", "maxBufferSize"];

async function post(key, value) {
  document.getElementById("log").textContent += `${key} ${JSON.stringify(value)}\n`;
  await fetch("/r", { method: "POST", body: JSON.stringify([key, value]) });
}

// A kernel over the elements i of x; `before` and `after` its loop.
const each = (declarations, body, before = "", after = "") => `
${declarations.map((declaration, n) => `@group(0) @binding(${n}) var<storage, ${declaration};`).join("\n")}
@compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) n: vec3<u32>) {
  ${before}
  for (var i = id.x; i < arrayLength(&x); i += n.x * 256u) {
    ${body}
  }
  ${after}
}`;

const RANDOM = (width) => each(["read_write> x: array<f32>"], `
    var h = (i + arrayLength(&x)) * 747796405u + 2891336453u;
    h = ((h >> ((h >> 28u) + 4u)) ^ h) * 277803737u;
    x[i] = ${width} * (f32((h >> 22u) ^ h) / 4294967296.0 - 0.5);`);

const NAN = each(["read_write> x: array<u32>"], "x[i] = 0x7fc00000u;");

const DIFFER = each(
  ["read> x: array<f32>", "read> y: array<f32>", "read_write> worst: atomic<u32>"],
  "most = max(most, bitcast<u32>(abs(x[i] - y[i])) & 0x7fffffffu);",
  "var most = 0u;",
  "atomicMax(&worst, most); // a NaN's bits are above all numbers'",
);

/** A device, with what the adapter allows. A dispatch is `{ pipeline, group, groups }`, as `bind` makes it. */
class Gpu {
  static async open() {
    const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
    const timed = adapter.features.has("timestamp-query");
    const device = await adapter.requestDevice({
      requiredFeatures: ["timestamp-query", "subgroups"].filter((name) => adapter.features.has(name)),
      requiredLimits: Object.fromEntries(LIMITS.map((name) => [name, adapter.limits[name]])),
    });
    await post("adapter", { vendor: adapter.info.vendor, architecture: adapter.info.architecture, timed, storage: adapter.limits.maxComputeWorkgroupStorageSize });
    const gpu = new Gpu(device, timed);
    [gpu.spoiling, gpu.differing] = await Promise.all([gpu.pipeline(NAN), gpu.pipeline(DIFFER)]);
    return gpu;
  }

  constructor(device, timed) {
    Object.assign(this, { device, timed, errors: [] });
    device.addEventListener("uncapturederror", (event) => this.errors.push(event.error.message.slice(0, 300)));
    this.queries = timed ? device.createQuerySet({ type: "timestamp", count: 2 }) : null;
    this.resolved = this.make(16, GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC);
    this.worst = this.make(4);
  }

  make(size, usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST) {
    return this.device.createBuffer({ size, usage });
  }

  pipeline(code) {
    const module = this.device.createShaderModule({ code });
    return this.device.createComputePipelineAsync({ layout: "auto", compute: { module, entryPoint: "main" } });
  }

  bind(pipeline, buffers, groups = [1024]) {
    const entries = buffers.map((buffer, binding) => ({ binding, resource: { buffer } }));
    return { pipeline, groups, group: this.device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries }) };
  }

  run({ pipeline, group, groups }, times = 1, timestampWrites = undefined) {
    const encoder = this.device.createCommandEncoder();
    const pass = encoder.beginComputePass(timestampWrites ? { timestampWrites } : {});
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group);
    for (let i = 0; i < times; i++) pass.dispatchWorkgroups(...groups);
    pass.end();
    if (timestampWrites) encoder.resolveQuerySet(this.queries, 0, 2, this.resolved, 0);
    this.device.queue.submit([encoder.finish()]);
  }

  done() {
    return this.device.queue.onSubmittedWorkDone();
  }

  async read(buffer) {
    const target = this.make(buffer.size, GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ);
    const encoder = this.device.createCommandEncoder();
    encoder.copyBufferToBuffer(buffer, 0, target, 0, buffer.size);
    this.device.queue.submit([encoder.finish()]);
    await target.mapAsync(GPUMapMode.READ);
    const copy = target.getMappedRange().slice(0);
    target.destroy();
    return copy;
  }

  /** Milliseconds of one of `times` runs. */
  async time(dispatch, times) {
    if (!this.timed) {
      const start = performance.now();
      this.run(dispatch, times);
      await this.done();
      return (performance.now() - start) / times;
    }
    this.run(dispatch, times, { querySet: this.queries, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 });
    const [begin, end] = new BigUint64Array(await this.read(this.resolved));
    return Number(end - begin) / 1e6 / times;
  }

  /** The least of three measurements that take about `effort` each. */
  async best(dispatch) {
    const first = await this.time(dispatch, 1);
    const times = Math.max(1, Math.min(200, Math.round(effort / first)));
    const runs = [];
    for (let r = 0; r < 3; r++) runs.push(await this.time(dispatch, times));
    return Math.min(...runs);
  }

  /** Numbers from -width / 2 to width / 2, the same for buffers of one size. */
  async fill(buffers, width) {
    const random = await this.pipeline(RANDOM(width.toFixed(1)));
    for (const buffer of buffers) this.run(this.bind(random, [buffer]));
  }

  spoil(buffers) {
    for (const buffer of buffers) this.run(this.bind(this.spoiling, [buffer]));
  }

  /** The largest difference of two buffers' elements; NaN where one has a NaN. */
  async apart(x, y) {
    this.device.queue.writeBuffer(this.worst, 0, new Uint32Array([0]));
    this.run(this.bind(this.differing, [x, y, this.worst]));
    return new Float32Array(await this.read(this.worst))[0];
  }
}

async function compile(gpu, variants) {
  const start = performance.now();
  return Promise.all(variants.map(async ({ wgsl }) => {
    try {
      const pipeline = await gpu.pipeline(wgsl);
      return { pipeline, ready: Math.round(performance.now() - start) };
    } catch (error) {
      return { error: String(error).slice(0, 300) };
    }
  }));
}

/** What each variant of a job took, by label. */
async function measure(gpu, variants, { buffers, results, reference, error, tolerance, flops }) {
  const compiled = await compile(gpu, variants);
  // while shaders compiled the GPU slowed its clock down: work until it is up again
  for (const warm = performance.now(); performance.now() - warm < (gpu.timed ? 150 : 0);) {
    gpu.run(reference);
    await gpu.done();
  }
  const rows = {};
  for (const [i, { label, bindings, groups, chosen }] of variants.entries()) {
    const { pipeline, ready, error: failure } = compiled[i];
    if (failure) { rows[label] = { error: failure }; continue; }
    const dispatch = gpu.bind(pipeline, bindings.map((key) => results[key] ?? buffers[key]), groups);
    gpu.spoil(Object.values(results));
    gpu.run(dispatch);
    const found = await error();
    const ms = await gpu.best(dispatch);
    rows[label] = { ms: +ms.toFixed(4), tflops: +(flops / ms / 1e9).toFixed(2), error: found, ready, ...(chosen ? { chosen: true } : {}) };
    if (!(found < tolerance)) rows[label].WRONG = true;
  }
  return rows;
}

/**
 * Measures every job of a file `[{ name, variants, ... }]` and posts what was found.
 *
 * `prepare(gpu, job)` makes the job's buffers and computes the references. It gives `{ buffers, results, reference,
 * error, tolerance, flops }`: two objects of buffers by the names that variants bind, those of `results` written by
 * them; a dispatch to warm up with; an async function that compares the results, and what it may give at most.
 */
export async function timeAll(file, prepare) {
  try {
    const gpu = await Gpu.open();
    for (const job of await (await fetch(file)).json()) {
      if (!job.name.includes(query.get("only") ?? "")) continue;
      if (performance.now() - started > budget) { await post(`skipped ${job.name}`, "out of time"); continue; }
      const problem = await prepare(gpu, job);
      const rows = await measure(gpu, job.variants, problem);
      for (const set of [problem.buffers, problem.results]) for (const buffer of Object.values(set)) buffer.destroy();
      await post(job.name, rows);
    }
    await post("errors", gpu.errors.slice(0, 5));
    await post("DONE", Math.round(performance.now() - started));
  } catch (error) {
    await post("FATAL", String(error.stack ?? error));
  }
}
