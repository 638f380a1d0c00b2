// The library's only JavaScript: what has to happen on this side of Python's border.
//
// Python describes buffers and a recorded step once, as JSON; every GPU object is made then and kept. A step
// is one call, `Program.replay`: it writes the inputs, encodes the recorded list in one compute pass, submits
// once, and reports through `wake`, a Python function that is passed in once. So a step makes no bind group,
// and nothing that Python would have to free. No promise waits for a lost device: see `Engine.settle`.

const BUFFER = { mapRead: 0x1, copySrc: 0x4, copyDst: 0x8, storage: 0x80, queryResolve: 0x200 };
const STORAGE = BUFFER.storage | BUFFER.copySrc | BUFFER.copyDst;
const READBACK = BUFFER.mapRead | BUFFER.copyDst;
const COMPUTE = 0x4, MAP_READ = 0x1;
const RING = 1024, MAX_QUERIES = 4096, OK = 0, LOST = 1, FAILED = 2, AGAIN = 3;

/** The engine of a GPUDevice: one each, so that everything on a device shares its pipelines. */
const engineOf = device => cached(engines, device, () => new Engine(device));
const engines = new WeakMap();

function cached(map, key, make, kept = Infinity) {  // of more than `kept`, the ones used last
  const value = map.has(key) ? map.get(key) : make();
  map.delete(key);
  if (map.set(key, value).size > kept) map.delete(map.keys().next().value);
  return value;
}

class Lost extends Error {}
const status = error => (error instanceof Lost ? LOST : FAILED);
const total = ranges => ranges.reduce((sum, range) => sum + range[2], 0);

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
      promise.then(resolve, async error => {
        await this.breathe();  // a lost device fails its promises a moment before it says that it is lost
        reject(error);
      }).then(() => this.waiting.delete(reject));
      this.pump();
    });
  }

  /** A finished map or submission is noticed when the GPU process does something, or else up to 3 ms late.
   *  The cheapest thing that makes a round trip is an empty error scope. After long waits 3 ms matter less
   *  than the work of asking, which on a software adapter slows the kernels themselves down. */
  async pump() {
    if (this.pumping) return;
    this.pumping = true;
    for (let i = 1; this.waiting.size > 0 && performance.now() < this.until; i++) {
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
    for (const [id, offset, size] of ranges) {
      encoder.copyBufferToBuffer(this.buffers.get(id), offset, target, at, size);
      at += size;
    }
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

  /** [dispatch, message, [[line, column, type, text], ...]] of one whose shader did not compile. */
  async diagnose(index, code, { message }) {
    const { messages } = await this.settle(this.device.createShaderModule({ code }).getCompilationInfo());
    return [index, message, messages.map(m => [m.lineNum, m.linePos, m.type, m.message])];
  }

  /** A Program, or JSON of what went wrong: {shaders: [...]} from `diagnose`, or {message}. */
  async compile(json, staging, wake) {
    const spec = JSON.parse(json);
    const code = d => spec.sources[d.source];
    let made;
    const message = await this.scoped(['validation'],
      () => { made = spec.dispatches.map(d => this.pipeline(d.label, d.access, code(d))); });
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

class Program {
  constructor(engine, spec, pipelines, staging, wake) {
    Object.assign(this, { engine, spec, pipelines, staging, wake, label: spec.label });
    this.memory = null;                // view of the inputs' staging memory in Python's heap
    this.list = [];                    // what a step dispatches: [{label, pipeline, group, x, y}]
    this.reads = [];                   // [{ranges, size}]
    this.landing = this.ring = 0;      // handles: where reads arrive, where losses wait
    this.turn = this.steps = 0;        // reads and steps so far
    this.told = 0;                     // the last ticket that was answered
    this.unread = new Set();           // numbers of steps whose loss waits in the ring
    this.flying = [];                  // promises of submissions that nobody reads
  }

  prepare() {
    const { engine, spec } = this, { device } = engine;
    this.list = spec.dispatches.map((d, i) => ({
      label: d.label, x: d.x, y: d.y, pipeline: this.pipelines[i],
      group: device.createBindGroup({
        label: d.label, layout: engine.layout(d.access).group,
        entries: d.bindings.map(([id, offset, size], binding) => (
          { binding, resource: { buffer: engine.buffers.get(id), offset, size } })),
      }),
    }));
    if (spec.loss) {
      this.ring = engine.create('tensorgrad losses', RING * 4, BUFFER.copySrc | BUFFER.copyDst);
      this.prepareRead([spec.loss]);  // read 0 is the loss
    }
    this.encode(null, null);
  }

  /** Registers ranges that a step can return; the result is the `index` of `replay`. */
  prepareRead(ranges) { return this.reads.push({ ranges, size: total(ranges) }) - 1; }

  /** The buffer that steps are read through, grown to `size` and free of any interrupted read. */
  readback(size) {
    const { engine } = this, buffer = engine.buffers.get(this.landing);
    if (buffer?.size >= size) {
      if (buffer.mapState !== 'unmapped') buffer.unmap();
      return buffer;
    }
    engine.free([this.landing]);
    this.landing = engine.create('tensorgrad readback', Math.max(size, 256), READBACK);
    return engine.buffers.get(this.landing);
  }

  upload() {
    const { engine: { device: { queue }, buffers } } = this;
    if (!this.memory?.data.byteLength) {  // not yet, or Python's heap has grown, which voids its views
      this.memory?.release();
      this.memory = this.staging.getBuffer('u8');
    }
    for (const [start, [id, offset, size]] of this.spec.uploads) {
      queue.writeBuffer(buffers.get(id), offset, this.memory.data, start, size);
    }
  }

  /** Encodes dispatches `from` up to `to` as one compute pass. */
  pass(encoder, from, to, descriptor) {
    const pass = encoder.beginComputePass(descriptor);
    let label = null, pipeline = null;
    for (let i = from; i < to; i++) {
      const step = this.list[i];
      if (step.label !== label && this.spec.groups) {  // neighbours of one operation share a group
        if (label !== null) pass.popDebugGroup();
        pass.pushDebugGroup(label = step.label);
      }
      if (step.pipeline !== pipeline) pass.setPipeline(pipeline = step.pipeline);
      pass.setBindGroup(0, step.group);
      pass.dispatchWorkgroups(step.x, step.y);
    }
    if (label !== null) pass.popDebugGroup();
    pass.end();
  }

  /** The step's command buffers: one, unless the recording asks for chunks. */
  encode(read, landing) {
    const { engine, list, label } = this, commands = [], size = this.spec.chunk || list.length || 1;
    let encoder, from = 0;
    do {
      if (from > 0) commands.push(encoder.finish());
      encoder = engine.device.createCommandEncoder({ label });
      this.pass(encoder, from, Math.min(from + size, list.length), { label });
    } while ((from += size) < list.length);
    this.copies(encoder);
    if (read) engine.copyOut(encoder, read.ranges, landing);
    commands.push(encoder.finish());
    return commands;
  }

  copies(encoder) {
    const { engine: { buffers }, spec } = this;
    for (const [[source, from], [target, to, size]] of spec.copies) {
      encoder.copyBufferToBuffer(buffers.get(source), from, buffers.get(target), to, size);
    }
    if (spec.loss) {
      const at = (this.steps % RING) * 4;
      encoder.copyBufferToBuffer(buffers.get(spec.loss[0]), spec.loss[1], buffers.get(this.ring), at, 4);
    }
  }

  countStep() {
    if (this.spec.loss) this.unread.add(this.steps);
    if (this.unread.size > RING) this.unread.delete(this.unread.values().next().value);
    return this.steps++;
  }

  /** One step. `index` is what to read back, or -1. Returns how many unread submissions are under way, or -1
   *  on a lost device; the outcome of a read goes to `wake(ticket, status, first four bytes)`. */
  replay(ticket, index, withLoss) {
    const { engine } = this;
    if (engine.lost !== null) return -1;
    const read = index < 0 ? null : this.reads[index];
    const landing = read && this.readback(read.size);
    this.upload();
    for (const commands of this.encode(read, landing)) engine.device.queue.submit([commands]);
    const number = this.countStep();
    if (read) {
      this.answer(ticket, read, landing, withLoss ? number : -1);
    } else {
      const done = engine.device.queue.onSubmittedWorkDone();
      this.flying.push(done);
      done.catch(() => {}).then(() => this.flying.splice(this.flying.indexOf(done), 1));
    }
    return this.flying.length;
  }

  /** Tells Python when a submission of those under way has finished. */
  drain(ticket) {
    this.engine.settle(this.flying[0] ?? Promise.resolve())
      .then(() => this.tell(ticket, OK, this.flying.length), error => this.tell(ticket, status(error), 0));
  }

  async answer(ticket, { size }, landing, number) {
    const turn = ++this.turn;
    const map = this.engine.settle(landing.mapAsync(MAP_READ, 0, Math.max(size, 4)));
    const error = await map.then(() => null, reason => reason);
    if (turn !== this.turn) return;  // nobody awaited it any more, and a later step took the buffer
    if (error) return void this.tell(ticket, status(error), 0);
    let first = 0;
    if (size <= 4) {
      first = new Uint32Array(landing.getMappedRange(0, 4))[0];
      landing.unmap();
    }
    if (this.tell(ticket, OK, first)) this.unread.delete(number);
  }

  /** True if somebody was still waiting for this ticket. A keyboard interrupt that strikes in `wake`, or in
   *  the event loop before the woken task goes on, would leave that task asleep for ever: tell it again. */
  tell(ticket, status, value) {
    this.told = ticket;
    setTimeout(() => { if (this.told === ticket) this.attempt(ticket, AGAIN, 0); }, 200);
    return this.attempt(ticket, status, value);
  }

  attempt(...answer) { try { return this.wake(...answer); } catch { return false; } }

  /** The bytes of a read that `wake` has reported. */
  fetch(index) {
    const buffer = this.engine.buffers.get(this.landing), { size } = this.reads[index];
    const bytes = buffer.getMappedRange(0, Math.max(size, 4)).slice(0, size);
    buffer.unmap();
    return bytes;
  }

  /** Losses in the ring that nobody read, oldest first. `forget` follows when they have arrived. */
  async losses() {
    const ring = new Uint32Array(await this.engine.read(`[[${this.ring}, 0, ${RING * 4}]]`));
    this.taken = [...this.unread];
    return Uint32Array.from(this.taken, number => ring[number % RING]).buffer;
  }

  forget() { for (const number of this.taken) this.unread.delete(number); }

  /** One step with a pass and two timestamps a dispatch: nanoseconds of each, in order. */
  async profile() {
    const { engine, list } = this, { device } = engine, half = MAX_QUERIES / 2, sets = [];
    const size = Math.max(list.length * 16, 16);  // two 64-bit times each; only the last set is not whole
    const times = engine.create('tensorgrad timestamps', size, BUFFER.queryResolve | BUFFER.copySrc);
    try {
      const encoder = device.createCommandEncoder({ label: this.label });
      this.upload();
      for (let i = 0; i < list.length; i++) {
        if (i % half === 0) sets.push(device.createQuerySet({ type: 'timestamp', count: MAX_QUERIES }));
        const querySet = sets.at(-1), at = (i % half) * 2;
        this.pass(encoder, i, i + 1, { timestampWrites: {
          querySet, beginningOfPassWriteIndex: at, endOfPassWriteIndex: at + 1 } });
      }
      sets.forEach((set, i) => encoder.resolveQuerySet(
        set, 0, Math.min(list.length - i * half, half) * 2, engine.buffers.get(times), i * MAX_QUERIES * 8));
      this.copies(encoder);
      device.queue.submit([encoder.finish()]);
      this.countStep();
      const at = new BigInt64Array(await engine.read(JSON.stringify([[times, 0, size]])));
      return Float64Array.from(list, (_, i) => Math.max(0, Number(at[2 * i + 1] - at[2 * i]))).buffer;
    } finally {
      for (const set of sets) set.destroy();
      engine.free([times]);
    }
  }

  close() {
    this.memory?.release();
    this.memory = this.told = null;
    this.engine.free([this.ring, this.landing]);
  }
}

export { engineOf };
