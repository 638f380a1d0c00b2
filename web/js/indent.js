// Python's indentation, for a plain text area: pure functions on text.

export const STEP = '    ';

const OPENS_BLOCK = /:\s*(#.*)?$/;
const OPENS_BRACKET = /[([{]\s*(#.*)?$/;
const FENCE = /^\s*(```|~~~)/;
const FIRST_PROMPT = /^\s*(>>>|In \[\d+\]:)( |$)/;
const PROMPT = /^\s*(>>>|\.\.\.:?|In \[\d+\]:)( |$)/;
const LEAVES_BLOCK = /^\s*(return|pass|break|continue|raise)\b/;

/** The blanks that the line after `line` begins with. */
export function indentAfter(line) {
  const own = line.match(/^\s*/)[0];
  if (OPENS_BLOCK.test(line) || OPENS_BRACKET.test(line)) return own + STEP;
  if (LEAVES_BLOCK.test(line)) return own.slice(0, Math.max(0, own.length - STEP.length));
  return own;
}

/**
 * Text as it may be pasted behind `before`, what its line holds already: without fences, prompts and
 * printed output, its common indentation replaced by that of its new place.
 */
export function cleanPaste(text, before = '') {
  const lines = dedented(typedOnly(text.replace(/\r\n?/g, '\n').split('\n')), before);
  const opened = OPENS_BLOCK.test(before) && lines.length > 1;
  const indent = opened ? indentAfter(before) : before.match(/^\s*/)[0];
  if (opened) lines.splice(0, lines.findIndex((line) => line.trim()), '');
  return lines.map((line, i) => (i && line.trim() ? indent + line : line)).join('\n');
}

/** The code of a fenced block, and what was typed in a copied session (Python's or IPython's). */
function typedOnly(lines) {
  const first = lines.findIndex((line) => line.trim());
  if (FENCE.test(lines[first])) {
    const fenced = lines.slice(first + 1);
    const end = fenced.findIndex((line) => FENCE.test(line));
    return typedOnly(end < 0 ? fenced : fenced.slice(0, end));
  }
  if (!FIRST_PROMPT.test(lines[first])) return lines;
  return lines.filter((line) => PROMPT.test(line)).map((line) => line.replace(PROMPT, ''));
}

/** Without the blanks that all lines begin with; a part of a line that is not its start keeps its own. */
function dedented(lines, before) {
  if (lines.length === 1 && before.trim()) return lines;
  const spaced = lines.map((line) => line.replace(/^[ \t]+/, (blanks) => blanks.replaceAll('\t', STEP)));
  const blanks = spaced.filter((line) => line.trim()).map((line) => line.match(/^ */)[0].length);
  const common = blanks.length ? Math.min(...blanks) : 0;
  return spaced.map((line) => (line.trim() ? line.slice(common) : ''));
}
