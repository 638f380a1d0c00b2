// The baby GPT at other sizes. ?quick for an adapter that is a CPU
import { main, query } from './python.js';

main('scaling', query.has('quick'));
