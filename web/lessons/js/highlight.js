// Python in colours: what a piece of code is, by its look alone.

import { make } from './make.js';

const KEYWORDS =
  'False|None|True|and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield';
const TOKENS = new RegExp(
  [
    '(?<comment>#.*)',
    '(?<string>[rfbRFB]{0,2}(?:"""[\\s\\S]*?(?:"""|$)|\'\'\'[\\s\\S]*?(?:\'\'\'|$)|"(?:\\\\.|[^"\\\\\\n])*"?|\'(?:\\\\.|[^\'\\\\\\n])*\'?))',
    `(?<keyword>\\b(?:${KEYWORDS})\\b)`,
    '(?<number>\\b\\d[\\d_]*(?:\\.\\d*)?(?:e[+-]?\\d+)?\\b)',
    '(?<called>\\b[A-Za-z_]\\w*(?=\\())',
    '\\w+',
  ].join('|'),
  'g',
);

/** @returns {(string | HTMLElement)[]} the text in pieces, those of a kind in an element with its class */
export function highlighted(text) {
  const pieces = [];
  let end = 0;
  for (const match of text.matchAll(TOKENS)) {
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    if (!kind) continue;
    pieces.push(text.slice(end, match.index), make('span', { className: `code-${kind}` }, match[0]));
    end = match.index + match[0].length;
  }
  return [...pieces, text.slice(end)];
}
