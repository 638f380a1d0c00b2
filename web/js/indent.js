// Python's indentation, for a plain text area: pure functions on text.

export const STEP = '    ';

const OPENS_BLOCK = /:\s*(#.*)?$/;
const OPENS_BRACKET = /[([{]\s*(#.*)?$/;
const LEAVES_BLOCK = /^\s*(return|pass|break|continue|raise)\b/;

/** The blanks that the line after `line` begins with. */
export function indentAfter(line) {
  const own = line.match(/^\s*/)[0];
  if (OPENS_BLOCK.test(line) || OPENS_BRACKET.test(line)) return own + STEP;
  if (LEAVES_BLOCK.test(line)) return own.slice(0, Math.max(0, own.length - STEP.length));
  return own;
}

/** Text as it may be pasted: prompts and "\r" taken away, common indentation removed. */
export function cleanPaste(text) {
  let lines = text.replace(/\r\n?/g, '\n').split('\n');
  if (/^\s*>>> ?/.test(lines[0])) {
    // A copied session: keep what was typed, drop what was printed.
    lines = lines.filter((line) => /^\s*(>>>|\.\.\.)( |$)/.test(line)).map((line) => line.replace(/^\s*(>>>|\.\.\.) ?/, ''));
  }
  const blanks = lines.filter((line) => line.trim()).map((line) => line.match(/^ */)[0].length);
  const common = blanks.length && lines.length > 1 ? Math.min(...blanks) : 0;
  return lines.map((line) => line.slice(Math.min(common, line.match(/^ */)[0].length))).join('\n');
}
