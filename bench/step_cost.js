// What a step costs outside the GPU: `step_cost.py` in Pyodide on a workload of common.js. ?work=gpt&rounds=5
import { work, ADAM, GPT, SGDM, STAGES } from './common.js';
import { main, query } from './python.js';

const options = { gpt: { ...GPT }, stages: STAGES, device: 'webgpu', adam: ADAM, sgd: SGDM };
main('step_cost', work(query.get('work') ?? 'gpt'), options, Number(query.get('rounds') ?? 5));
