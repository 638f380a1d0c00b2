// What has to happen on this side of Python's border. This file and program.js, which it imports, are the
// library's only JavaScript.
//
// Python describes buffers and a recorded step once, as JSON; every GPU object is made then and kept, here in
// the `Engine` of a device and in the `Program` of a recorded step. Nothing that a step does makes an object
// that Python would have to free. No promise waits for a lost device: see `Engine.settle`.

import { BUFFER, COMPUTE, Lost, MAP_READ, Program, READBACK, total } from './program.js';

const STORAGE = BUFFER.storage | BUFFER.copySrc | BUFFER.copyDst;
const AT_A_TIME = Math.max(2, (globalThis.navigator?.hardwareConcurrency ?? 4) >> 1);  // the others are for steps
// Firefox looks for finished work ten times a second, and whenever something is submitted.
const POLLS = /Firefox\//.test(globalThis.navigator?.userAgent), POLL_MS = 4;

/** The engine of a GPUDevice: one each, so that everything on a device shares its pipelines. */
const engineOf = device => cached(engines, device, () => new Engine(device));
const engines = new WeakMap();

function cached(map, key, make, kept = Infinity) {  // of more than `kept`, the ones used last
  const value = map.has(key) ? map.get(key) : make();
  map.delete(key);
  if (map.set(key, value).size > kept) map.delete(map.keys().next().value);
  return value;
}

class Engine {
  constructor(device) {
    this.device = device;
    this.lost = null;            // why the device is gone
    this.waiting = new Set();    // rejections of promises that the device still owes
    this.patience = 50;          // ms of one wait for which `pump` works; fewer where the GPU is a CPU
    this.pumping = false;
    (this.channel = new MessageChannel()).port1.start();
    this.nextId = 1;
    this.buffers = new Map();    // handle -> GPUBuffer
    this.layouts = new Map();    // 'rrw' -> its bind group and pipeline layouts
    this.pipelines = new Map();  // layout and WGSL -> promise of a GPUComputePipeline
    this.kept = 1024;            // pipelines at most; a program has its own besides
    device.lost.then(info => this.lose(`${info.message || 'no reason given'} (${info.reason})`));
  }

  lose(reason) {
    this.lost ??= reason;
    for (const reject of this.waiting) reject(new Lost(this.lost));
    this.waiting.clear();
  }

  /** Settles as `promise` does, or rejects at once when the device is lost. While it waits, `pump` keeps
   *  the browser's GPU process awake. (Promise.race would leave a reaction on `device.lost` each time.) */
  settle(promise) {
    return new Promise((resolve, reject) => {
      if (this.lost !== null) return void reject(new Lost(this.lost));
      this.waiting.add(reject);
      this.until = performance.now() + this.patience;
      promise.then(resolve, async error => {  // a lost device fails its promises before it says that it is lost
        for (const end = performance.now() + 20; this.lost === null && performance.now() < end;) await this.breathe();
        reject(error);
      }).then(() => this.waiting.delete(reject));
      this.pump();
    });
  }

  /** A finished map or submission is noticed when the GPU process does something, or else up to 3 ms late.
   *  The cheapest thing that makes a round trip is an empty error scope. After long waits 3 ms matter less
   *  than the work of asking, which on a software adapter slows the kernels themselves down. In Firefox it is an
   *  empty submission that counts, and after a long wait 100 ms would matter. */
  async pump() {
    if (this.pumping) return;
    this.pumping = true;
    for (let i = 1; this.waiting.size > 0 && (POLLS || performance.now() < this.until); i++) {
      if (POLLS) {
        this.device.queue.submit([]);
        if (performance.now() >= this.until) await new Promise(resolve => setTimeout(resolve, POLL_MS));
      }
      this.device.pushErrorScope('validation');
      await this.device.popErrorScope().catch(() => {});
      if (i % 16 === 0) await this.breathe();
    }
    this.pumping = false;
  }

  /** Lets other tasks in (`lost` among them). A timer would do, but browsers stretch those to 4 ms. */
  breathe() {
    return new Promise(resolve => {
      this.channel.port1.addEventListener('message', resolve, { once: true });
      this.channel.port2.postMessage(null);
    });
  }

  /** Runs `make` in error scopes; resolves to the first error's message, or null. */
  async scoped(filters, make) {
    let thrown = null;
    filters.forEach(filter => this.device.pushErrorScope(filter));
    try { make(); } catch (error) { thrown = String(error); }
    const errors = await this.settle(Promise.all(filters.map(() => this.device.popErrorScope())));
    return thrown ?? errors.find(error => error)?.message ?? null;
  }

  create(label, size, usage = STORAGE) {
    const id = this.nextId++;
    this.buffers.set(id, this.device.createBuffer({ label, size, usage }));
    return id;
  }

  free(ids) {
    for (const id of ids) { this.buffers.get(id)?.destroy(); this.buffers.delete(id); }
  }

  /** [[label, bytes], ...] -> {ids}, or {message} with none of them left. */
  async alloc(json) {
    const ids = [];
    const message = await this.scoped(['validation', 'out-of-memory'],
      () => { for (const [label, size] of JSON.parse(json)) ids.push(this.create(label, size)); });
    if (message === null) return JSON.stringify({ ids });
    this.free(ids);
    return JSON.stringify({ message });
  }

  write(id, offset, array) {
    const bytes = array.getBuffer('u8');
    this.device.queue.writeBuffer(this.buffers.get(id), offset, bytes.data);
    bytes.release();
  }

  /** [[handle, offset, bytes], ...] -> their bytes, one after the other. */
  async read(json) {
    const ranges = JSON.parse(json), size = total(ranges);
    const staging = this.create('tensorgrad readback', Math.max(size, 4), READBACK);
    try {
      const buffer = this.buffers.get(staging), encoder = this.device.createCommandEncoder();
      this.copyOut(encoder, ranges, buffer);
      this.device.queue.submit([encoder.finish()]);
      await this.settle(buffer.mapAsync(MAP_READ));
      return buffer.getMappedRange().slice(0, size);
    } finally {
      this.free([staging]);
    }
  }

  copyOut(encoder, ranges, target) {
    let at = 0;
    for (const range of ranges) {
      this.copy(encoder, range, target, at);
      at += range[2];
    }
  }

  /** Copies a range to a buffer (or the handle of one). */
  copy(encoder, [id, offset, size], target, at) {
    encoder.copyBufferToBuffer(this.buffers.get(id), offset, this.buffers.get(target) ?? target, at, size);
  }

  layout(access) {
    const make = () => {  // explicit, because 'auto' would drop a binding that the shader does not use
      const entries = [...access].map((mode, binding) => (
        { binding, visibility: COMPUTE, buffer: { type: mode === 'w' ? 'storage' : 'read-only-storage' } }));
      const group = this.device.createBindGroupLayout({ label: access, entries });
      return { group, pipeline: this.device.createPipelineLayout({ bindGroupLayouts: [group] }) };
    };
    return cached(this.layouts, access, make);
  }

  /** A pipeline by source and layout, made once. All that are asked for before an await compile together. */
  pipeline(label, access, code) {
    const key = `${access} ${code}`;
    return cached(this.pipelines, key, () => {
      const compute = { module: this.device.createShaderModule({ label, code }), entryPoint: 'main' };
      const pipeline = this.device.createComputePipelineAsync({ label, layout: this.layout(access).pipeline, compute });
      pipeline.catch(() => this.pipelines.delete(key));
      return pipeline;
    }, this.kept);
  }

  /** A pipeline whose errors concern nobody yet. */
  quietly(label, access, code) {
    this.device.pushErrorScope('validation');
    const pipeline = this.pipeline(label, access, code);
    this.device.popErrorScope().catch(() => {});
    return pipeline;
  }

  /** Starts to compile a shader of a program to come, whose `compile` reports what is wrong with it. A submission
   *  sends it on its way now: Python goes on writing the next one. */
  begin(label, access, code) {
    this.quietly(label, access, code);
    this.device.queue.submit([]);
  }

  /** [dispatch, message, [[line, column, type, text], ...]] of one whose shader did not compile. */
  async diagnose(index, code, { message }) {
    const { messages } = await this.settle(this.device.createShaderModule({ code }).getCompilationInfo());
    return [index, message, messages.map(m => [m.lineNum, m.linePos, m.type, m.message])];
  }

  /** Compiles the faster texts of a program's shaders, some at a time, so that its steps go on meanwhile. They take up
   *  each when it is ready; one that does not compile after all is left as it is. */
  async improve(program) {
    const texts = Object.entries(JSON.parse(program.faster)), { dispatches } = program.spec;
    const take = ([source, text]) => Promise.allSettled(program.list.map(async (step, i) => {
      const { label, access } = dispatches[i];
      if (dispatches[i].source === +source) step.pipeline = await this.quietly(label, access, text);
    }));
    const work = async () => { while (texts.length > 0) await take(texts.shift()); };
    await Promise.all(Array.from({ length: AT_A_TIME }, work));
  }

  /** A Program, or JSON of what went wrong: {shaders: [...]} from `diagnose`, or {message}. */
  async compile(json, staging, wake) {
    const spec = JSON.parse(json);
    const code = d => spec.sources[d.source], start = d => this.pipeline(d.label, d.access, code(d));
    let made;
    const message = await this.scoped(['validation'], () => {
      // a browser compiles a few at a time: the long ones first, or the last would keep one core busy alone
      for (const d of spec.dispatches.toSorted((a, b) => code(b).length - code(a).length)) start(d);
      made = spec.dispatches.map(start);
    });
    const results = await this.settle(Promise.allSettled(made));
    const shaders = await Promise.all(results.flatMap(({ reason }, i) => (
      reason ? [this.diagnose(i, code(spec.dispatches[i]), reason)] : [])));
    if (shaders.length > 0) return JSON.stringify({ shaders });
    const program = new Program(this, spec, results.map(result => result.value), staging, wake);
    // Encoding once without submitting makes the browser check every binding and copy now, not in a step.
    const invalid = message ?? await this.scoped(['validation'], () => program.prepare());
    if (invalid === null) return program;
    program.close();
    return JSON.stringify({ message: invalid });
  }
}

export { engineOf };
