// A recorded step. One call, `Program.replay`, writes the inputs, encodes the recorded list in one compute
// pass, submits once, and reports through `wake`, a Python function that is passed in once.

const BUFFER = { mapRead: 0x1, mapWrite: 0x2, copySrc: 0x4, copyDst: 0x8, storage: 0x80, queryResolve: 0x200 };
const READBACK = BUFFER.mapRead | BUFFER.copyDst, UPLOAD = BUFFER.mapWrite | BUFFER.copySrc;
const COMPUTE = 0x4, MAP_READ = 0x1, MAP_WRITE = 0x2;
const RING = 1024, MAX_QUERIES = 4096, OK = 0, LOST = 1, FAILED = 2, AGAIN = 3;
const IN_FLIGHT = 3, GROUP_MS = 4, AT_ONCE = 256;
const LARGE = 2 ** 16, MAPPED = 2 ** 24;  // bytes of an input that is worth a mapped buffer, and of all of these

class Lost extends Error {}
const status = error => (error instanceof Lost ? LOST : FAILED);
const total = ranges => ranges.reduce((sum, range) => sum + range[2], 0);

/** The inputs' way from Python's memory into their buffers. A large one goes by way of a mapped buffer, where one is
 *  free, which is quicker than through the browser's commands. */
class Uploads {
  constructor(engine, targets, staging) {
    Object.assign(this, { engine, targets, staging });
    this.memory = null;                 // view of the staging memory, which begins with the inputs' addresses
    this.heap = this.addresses = null;  // views of all of Python's memory, and of those addresses
    this.mapped = targets.map(() => []);  // of each input the buffers that are mapped and wait to be filled
    this.filled = [];                   // [input, buffer]: of these the next submission copies
    this.made = [];                     // handles of all of them
    this.room = MAPPED;                 // bytes that more of them may have
  }

  /** Writes the inputs; the result is command buffers, to be submitted before what reads the inputs. */
  write() {
    const { device, buffers } = this.engine;
    if (!this.memory?.data.byteLength) this.look();
    this.targets.forEach(([id, offset, size], i) => {
      const from = this.addresses[i], buffer = this.mapped[i].pop();
      if (buffer) {
        new Uint8Array(buffer.getMappedRange()).set(this.heap.subarray(from, from + size));
        buffer.unmap();
        this.filled.push([i, buffer]);
      } else {
        device.queue.writeBuffer(buffers.get(id), offset, this.heap, from, size);
        if (size >= LARGE && size <= this.room) this.another(i, size);
      }
    });
    if (this.filled.length === 0) return [];
    const encoder = device.createCommandEncoder();
    for (const [i, buffer] of this.filled) {
      const [id, offset, size] = this.targets[i];
      encoder.copyBufferToBuffer(buffer, 0, buffers.get(id), offset, size);
    }
    return [encoder.finish()];
  }

  /** After their submission: they are mapped again when the device has read them. */
  submitted() {
    while (this.filled.length > 0) this.map(...this.filled.pop());
  }

  look() {  // for the first time, or Python's heap has grown, which voids its views
    this.memory?.release();
    this.memory = this.staging.getBuffer('u8');
    const { buffer, byteOffset } = this.memory.data;
    this.heap = new Uint8Array(buffer);
    this.addresses = new Uint32Array(buffer, byteOffset, this.targets.length);
  }

  /** A further buffer for an input's later values. One for which there is no memory is never mapped, and so not used. */
  another(i, size) {
    const { engine, engine: { device } } = this, filters = ['validation', 'out-of-memory'];
    this.room -= size;
    filters.forEach(filter => device.pushErrorScope(filter));
    const id = engine.create('tensorgrad upload', size, UPLOAD);
    this.made.push(id);
    this.map(i, engine.buffers.get(id));
    filters.forEach(() => device.popErrorScope().catch(() => {}));
  }

  map(i, buffer) {
    buffer.mapAsync(MAP_WRITE).then(() => this.mapped[i].push(buffer), () => {});
  }

  close() {
    this.memory?.release();
    this.memory = this.heap = this.addresses = null;
    this.engine.free(this.made);
  }
}

class Program {
  constructor(engine, spec, pipelines, staging, wake) {
    Object.assign(this, { engine, spec, pipelines, wake, label: spec.label });
    this.uploads = new Uploads(engine, spec.uploads, staging);
    this.list = [];                    // what a step dispatches: [{label, pipeline, group, x, y}]
    this.faster = '{}';                // JSON of texts that compile longer and run faster, by number of the source
    this.improved = null;              // promise: the list's pipelines are those
    this.ready = [];                   // the next step's command buffers
    this.reads = [];                   // [{ranges, size}]
    this.landing = this.ring = 0;      // handles: where reads arrive, where losses wait
    this.turn = this.steps = 0;        // reads and steps so far
    this.unread = new Set();           // numbers of steps whose loss waits in the ring
    this.flying = [];                  // promises of groups of submissions that nobody reads
    this.group = 1;                    // how many submissions share a promise, and how many may at most
    this.largestGroup = 20;
    this.unmarked = 0;                 // submissions since the last promise
    this.finished = 0;                 // when the last promise was kept
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
    this.ready = this.encode();
  }

  /** Goes over to the faster texts. What runs a second time is worth it. */
  improvement() {
    this.improved ??= this.engine.improve(this);
    return this.engine.settle(this.improved);
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

  /** Encodes dispatches `from` up to `to`, each so many times, as one compute pass. */
  pass(encoder, from, to, descriptor, times = 1) {
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
      for (let n = 0; n < times; n++) pass.dispatchWorkgroups(step.x, step.y);
    }
    if (label !== null) pass.popDebugGroup();
    pass.end();
  }

  /** A step's command buffers: one, unless the recording asks for chunks. `before` and `after` encode copies. */
  encode(before, after) {
    const { engine, list, label } = this, commands = [], size = this.spec.chunk || list.length || 1;
    let encoder = engine.device.createCommandEncoder({ label }), from = 0;
    before?.(encoder);
    do {
      if (from > 0) {
        commands.push(encoder.finish());
        encoder = engine.device.createCommandEncoder({ label });
      }
      this.pass(encoder, from, Math.min(from + size, list.length), { label });
    } while ((from += size) < list.length);
    for (const [source, target] of this.spec.copies) engine.copy(encoder, source, ...target);
    after?.(encoder);
    commands.push(encoder.finish());
    return commands;
  }

  submit(commands) {
    const { queue } = this.engine.device;
    if (this.spec.chunk) for (const one of commands) queue.submit([one]);
    else queue.submit(commands);
  }

  /** Keeps the loss of the step that is being encoded, where `losses` finds it. */
  keepLoss(encoder) {
    if (this.spec.loss) this.engine.copy(encoder, this.spec.loss, this.ring, (this.steps % RING) * 4);
  }

  countStep() {
    if (this.spec.loss) this.unread.add(this.steps);
    if (this.unread.size > RING) this.unread.delete(this.unread.values().next().value);
    if (this.steps === 1) this.improvement().catch(() => {});
    return this.steps++;
  }

  /** One step. `index` is what to read back, or -1. Returns -1 on a lost device, 1 where so much is under way
   *  that the next step should `drain` first; a read's outcome goes to `wake(ticket, status, first four bytes)`. */
  replay(ticket, index, withLoss) {
    const { engine } = this;
    if (engine.lost !== null) return -1;
    const read = index < 0 ? null : this.reads[index];
    const landing = read && this.readback(read.size);
    const encoder = engine.device.createCommandEncoder({ label: this.label });
    this.keepLoss(encoder);
    if (read) engine.copyOut(encoder, read.ranges, landing);
    this.submit([...this.uploads.write(), ...this.ready, encoder.finish()]);
    this.uploads.submitted();
    const number = this.countStep();
    if (read) this.answer(ticket, read.size, landing, withLoss ? number : null);
    else this.mark();
    this.ready = this.encode();  // while the device works on this one
    return this.flying.length < IN_FLIGHT ? 0 : 1;
  }

  /** `count` steps whose inputs are on the device. Each of `feeds` is [range of an input, buffers, values in
   *  each, values in all]: step i of the call takes value `first + i`, round and round, or i where there is
   *  nothing to go round. The answer is the losses. */
  replayMany(ticket, feeds, first, count) {
    const { engine } = this, sources = JSON.parse(feeds);
    if (engine.lost !== null) return -1;
    const landing = this.readback(count * 4);
    let commands = [];
    for (let i = 0; i < count; i++) {
      commands.push(...this.encode(encoder => {
        for (const [target, buffers, each, all] of sources) {
          const at = all ? (first + i) % all : i, size = target[2];
          engine.copy(encoder, [buffers[Math.floor(at / each)], (at % each) * size, size], ...target);
        }
      }, encoder => engine.copy(encoder, this.spec.loss, landing, i * 4)));
      if (i === count - 1 || commands.length * this.list.length >= AT_ONCE) {
        this.submit(commands);
        commands = [];
      }
    }
    this.answer(ticket, count * 4, landing, null);
    this.improvement().catch(() => {});
    return 0;
  }

  /** Notes a submission that nobody reads. A promise costs a round trip, so short steps share one: as many as
   *  took GROUP_MS lately. */
  mark() {
    if (++this.unmarked < this.group) return;
    const count = this.unmarked, begun = performance.now();
    this.unmarked = 0;
    this.flying.push(this.engine.device.queue.onSubmittedWorkDone().catch(() => {}).then(() => {
      const now = performance.now(), pace = (now - Math.max(begun, this.finished)) / count;
      this.group = Math.min(Math.max(Math.floor(GROUP_MS / pace), 1), this.largestGroup);
      this.finished = now;
      this.flying.shift();
    }));
  }

  /** Tells Python when fewer than IN_FLIGHT groups of submissions are under way. */
  async drain(ticket) {
    try {
      do await this.engine.settle(this.flying[0] ?? Promise.resolve());
      while (this.flying.length >= IN_FLIGHT);
      this.tell(ticket, OK, 0, null);
    } catch (error) {
      this.tell(ticket, status(error), 0, null);
    }
  }

  /** Reports a read when it has arrived; `number` is that of the step whose loss is in it, or null. */
  async answer(ticket, size, landing, number) {
    const turn = ++this.turn;
    const map = this.engine.settle(landing.mapAsync(MAP_READ, 0, Math.max(size, 4)));
    const error = await map.then(() => null, reason => reason);
    if (turn !== this.turn) return;  // nobody awaited it any more, and a later step took the buffer
    if (error) return void this.tell(ticket, status(error), 0, null);
    let first = 0;
    if (size <= 4) {
      first = new Uint32Array(landing.getMappedRange(0, 4))[0];
      landing.unmap();
    }
    this.tell(ticket, OK, first, number);
  }

  /** Wakes the task that waits for a ticket: it goes on within this call, and may begin the next step. A loss
   *  that finds nobody waiting stays unread. Where a keyboard interrupt strikes in Python before the task goes
   *  on, it is woken again to raise it; any other error is that of the task. */
  tell(ticket, status, value, number) {
    const unread = () => { if (number !== null) this.unread.add(number); };
    if (number !== null) this.unread.delete(number);
    try {
      if (!this.wake?.(ticket, status, value)) unread();
    } catch (error) {
      setTimeout(() => {
        if (!this.wake?.(ticket, AGAIN, 0)) throw error;
        unread();
      });
    }
  }

  /** The `size` bytes of a read that `wake` has reported. */
  fetch(size) {
    const buffer = this.engine.buffers.get(this.landing);
    const bytes = buffer.getMappedRange(0, Math.max(size, 4)).slice(0, size);
    buffer.unmap();
    return bytes;
  }

  /** Reads the ring of losses: which of them count is told by `takeLosses` when they have arrived. */
  losses(ticket) {
    const { engine } = this, size = RING * 4, landing = this.readback(size);
    if (engine.lost !== null) return -1;
    const encoder = engine.device.createCommandEncoder();
    engine.copyOut(encoder, [[this.ring, 0, size]], landing);
    engine.device.queue.submit([encoder.finish()]);
    this.answer(ticket, size, landing, null);
    return 0;
  }

  /** The losses that nobody has read, oldest first; they are read now. */
  takeLosses() {
    const ring = new Uint32Array(this.fetch(RING * 4));
    const kept = [...this.unread].filter(number => number >= this.steps - RING).sort((a, b) => a - b);
    this.unread.clear();
    return Uint32Array.from(kept, number => ring[number % RING]).buffer;
  }

  /** One step with a pass and two timestamps a dispatch: nanoseconds of each, in order. `times` is how often each
   *  dispatch is made in its pass; by default once. */
  async profile(times = []) {
    const { engine, list } = this, { device } = engine, half = MAX_QUERIES / 2, sets = [];
    const size = Math.max(list.length * 16, 16);  // two 64-bit times each; only the last set is not whole
    const ticks = engine.create('tensorgrad timestamps', size, BUFFER.queryResolve | BUFFER.copySrc);
    try {
      const encoder = device.createCommandEncoder({ label: this.label });
      const inputs = this.uploads.write();
      for (let i = 0; i < list.length; i++) {
        if (i % half === 0) sets.push(device.createQuerySet({ type: 'timestamp', count: MAX_QUERIES }));
        const querySet = sets.at(-1), at = (i % half) * 2;
        this.pass(encoder, i, i + 1, { timestampWrites: {
          querySet, beginningOfPassWriteIndex: at, endOfPassWriteIndex: at + 1 } }, times[i]);
      }
      sets.forEach((set, i) => encoder.resolveQuerySet(
        set, 0, Math.min(list.length - i * half, half) * 2, engine.buffers.get(ticks), i * MAX_QUERIES * 8));
      for (const [source, target] of this.spec.copies) engine.copy(encoder, source, ...target);
      this.keepLoss(encoder);
      device.queue.submit([...inputs, encoder.finish()]);
      this.uploads.submitted();
      this.countStep();
      const at = new BigInt64Array(await engine.read(JSON.stringify([[ticks, 0, size]])));
      return Float64Array.from(list, (_, i) => Math.max(0, Number(at[2 * i + 1] - at[2 * i]))).buffer;
    } finally {
      for (const set of sets) set.destroy();
      engine.free([ticks]);
    }
  }

  close() {
    this.turn++;
    this.uploads.close();
    this.wake = this.ready = null;
    this.engine.free([this.ring, this.landing]);
  }
}

export { BUFFER, COMPUTE, Lost, MAP_READ, Program, READBACK, total };
