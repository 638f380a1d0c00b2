// Tuned against untuned on a workload of common.js. ?work=gpt&seconds=10&steps=50&rounds=3
import { work, ADAM, GPT, SGDM, STAGES } from './common.js';
import { main, query } from './python.js';

const problem = work(query.get('work') ?? 'gpt');
const options = { gpt: { ...GPT }, stages: STAGES, device: 'webgpu', adam: ADAM, sgd: SGDM };
const [seconds, steps, rounds] = ['seconds', 'steps', 'rounds'].map((key, i) => Number(query.get(key) ?? [10, 50, 3][i]));
main('tune', problem, options, seconds, steps, rounds);
