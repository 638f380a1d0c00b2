// tensorgrad from Python in Pyodide, on the workloads of common.js. ?device=webgpu&dtype=f16
import { auto, measure, ADAM, GPT, SGDM, STAGES } from './common.js';
import { post, query, start, stepper } from './python.js';
const device = query.get('device') ?? 'webgpu';
const dtype = query.get('dtype') ?? 'f32';  // f16 is mixed precision; the operands of the matmul chains are f16 then
const group = Number(query.get('group') ?? 0);  // most submissions that share a promise, 1 is none; 0 is our default

async function make(work) {
  const started = performance.now();
  const python = await start();
  const ready = performance.now();
  const options = { gpt: { ...GPT }, stages: STAGES, device, dtype, adam: ADAM, sgd: SGDM, group };
  const session = await python.pyimport('workloads').session(work, options), step = stepper(session);
  return {
    initMs: ready - started,
    note: session.note,
    awaitUnread: true,
    step: (i, batch, read) => step(i, read),
    profile: session.profile,
    many: session.many,
  };
}

// ?profile also posts every kernel's time on the GPU, in microseconds; ?many=N the milliseconds a step of `run_steps(N)`,
// the third of three calls
async function run(work, options) {
  let session;
  const result = await measure(async (w) => (session = await make(w)), work, options);
  if (query.has('profile') && session.profile) {
    const times = JSON.parse(await session.profile());
    await post(`profile ${work}`, times);
  }
  if (query.has('many') && session.many) {
    let ms;
    for (let i = 0; i < 3; i++) ms = await session.many(Number(query.get('many')));
    await post(`many ${work}`, ms);
  }
  return result;
}

auto({ name: `tensorgrad ${device}${dtype === 'f32' ? '' : ` ${dtype}`}`, run });
