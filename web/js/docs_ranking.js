// What the documentation's search finds, and what comes first: names before sentences, and what has more of the question's
// words before what has few. It needs no page, so that a test can ask it questions.

const SILENT = new Set( // words that say nothing of what a question is about
  (
    'a an and are as at be by can do does for from get have how i if in is it me my of on or over should so that the there this ' +
    'into to use using we what when which why will with you your'
  ).split(' '),
);
const FAINT = new Set( // and those that everything here is about, or that a question of any kind has
  'compute error find found function layer make model not operation tensor weight'.split(' '),
);
const SAME = { // what others call what the documentation has by another name
  __proto__: null,
  accumulation: 'accumulate', concatenate: 'concat', concatenation: 'concat', convolution: 'conv2d', cuda: 'webgpu',
  dense: 'linear', draw: 'plot', ema: 'averages', embed: 'page', fc: 'linear', freeze: 'frozen', gpu: 'webgpu',
  gradient: 'grad', image: 'picture', inference: 'predictor', initialize: 'initial', jupyter: 'jupyterlite',
  lr: 'rate', multiplication: 'matmul', notebook: 'jupyterlite', predict: 'predictor', scheduler: 'schedule',
  validation: 'validate',
};
const OF_KIND = { member: 0.7, module: 0.7, background: 0.3, guide: 1.2, topic: 1.2 };

/** Words of a name or of a question: `CrossEntropyLoss` and `cross_entropy` have cross and entropy, and each as one word. */
function words(text, field) {
  const parts = text.split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  const inner = parts.flatMap((part) => part.split(/(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/));
  const whole = field === 'name' || field === 'others' ? text.split(' ') : (text.match(/\w+[-_]\w+/g) ?? []);
  return [...new Set([...parts, ...inner, ...whole.map(joined)].map((word) => word.toLowerCase()))].filter(Boolean);
}

const joined = (text) => text.replace(/^(tg|nn|optim)\./, '').replace(/[^\p{L}\p{N}]+/gu, '').toLowerCase();
const last = (name) => name.split('.').at(-1);
const one = (word) => (word.length > 3 ? word.replace(/(?<=ss|x|ch|sh)es$|(?<![su])s$/, '') : word);
const verb = (word) => (word.length > 5 ? word.replace(/(?:(.)\1|(.))ing$/, '$1$2') : word);
const weight = (word) => (FAINT.has(one(word)) ? 0.2 : 1);

/** A word, and what it may stand for: one thing for several, do for doing, our word for another's. */
const meant = (word) => [...new Set([word, one(word), verb(word), SAME[one(word)] ?? word])];

/** The index, from the entries of `search.json`. */
export function indexed(MiniSearch, entries) {
  const search = new MiniSearch({
    fields: ['name', 'others', 'text', 'more'],
    storeFields: ['shown', 'page', 'kind', 'text'],
    tokenize: words,
    processTerm: (word) => [...new Set([word, one(word)])],
  });
  search.addAll(
    entries.map(([shown, page, kind, text, others, more], id) => {
      // A member goes by its own name; that of its class is one more word.
      const [name, owner] = kind === 'member' ? [last(shown), shown] : [shown, ''];
      return { id, shown, name, page, kind, text, others, more: `${owner} ${more}` };
    }),
  );
  return search;
}

/** What is found, the best first; names that begin with the question stand above all, the shortest first. */
export function found(search, question, most) {
  const telling = question.split(/\s+/).filter((word) => !SILENT.has(word.toLowerCase()));
  const asked = telling.length ? telling.join(' ') : question;
  const used = words(asked);
  const count = used.reduce((sum, word) => sum + weight(word), 0);
  const all = new Map(); // id -> what is found, with a score for all words together
  for (const word of used) {
    for (const result of search.search(word, OPTIONS)) {
      const { score, matched } = all.get(result.id) ?? { score: 0, matched: 0 };
      all.set(result.id, { ...result, score: score + weight(word) * result.score, matched: matched + weight(word) });
    }
  }
  return [...all.values()]
    .map((result) => ({ result, rank: rank(result, asked, count) }))
    .sort((a, b) => b.rank - a.rank)
    .slice(0, most)
    .map(({ result: { shown, page, kind, text } }) => ({ name: shown, page, kind, text }));
}

function rank({ shown, kind, score, matched }, asked, count) {
  const factor = OF_KIND[kind] ?? 1;
  const start = joined(asked);
  const begun = [shown, last(shown)].map(joined).filter((name) => name.startsWith(start));
  const first = begun.length ? (1e6 * factor) / Math.min(...begun.map((name) => name.length)) : 0;
  const whole = shown.toLowerCase() === asked.toLowerCase() ? 2e6 : 0;
  // Somebody who wants to split a tensor means `split` more than `tensor_split`.
  const named = words(asked).some((word) => weight(word) === 1 && meant(word).includes(joined(last(shown)))) ? 2 : 1;
  return whole + first + score * factor * named * (matched / count) ** 2;
}

const OPTIONS = {
  boost: { name: 6, others: 5, text: 2, more: 1 },
  tokenize: meant,
  processTerm: (word) => word,
  boostTerm: (word, at) => (at ? 0.7 : 1),
  prefix: (word) => word.length > 1,
  fuzzy: (word) => (word.length > 4 && !/\d/.test(word) ? 0.2 : false), // another digit is another thing,
};
