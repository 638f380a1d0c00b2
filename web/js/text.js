// A block of streamed text as a terminal shows it: "\r" goes back to the start of the line, so
// that progress bars stay in place; colour codes are left out.

const ESCAPES = /\x1b\[[0-9;?]*([A-Za-z])/g;
const MOST = 200_000;

export class TextBlock {
  /** @param {HTMLElement} element where the text goes */
  constructor(element) {
    this._element = element;
    this._current = document.createTextNode(''); // the line that is being written, behind what is settled
    element.append(this._current);
    this._length = 0; // of what is settled
    this._line = '';
    this._column = 0;
    this._breaks = 0;
    this._last = null;
  }

  /** Whether it has several lines, so that they may be a table. */
  get columns() {
    return this._breaks + (this._line ? 1 : 0) > 1;
  }

  write(text) {
    let settled = '';
    // Erasing to the end of the line is the one code that progress bars need.
    const plain = text.replace(ESCAPES, (_, letter) => (letter === 'K' ? '\x1b' : ''));
    for (const part of plain.split(/(\r\n|\n|\r|\x1b)/)) {
      if (part === '\n' || part === '\r\n') {
        settled += `${this._line}\n`;
        this._breaks += 1;
        this._line = '';
        this._column = 0;
      } else if (part === '\r') {
        this._column = 0;
      } else if (part === '\x1b') {
        this._line = this._line.slice(0, this._column);
      } else if (part) {
        this._line = this._line.slice(0, this._column) + part + this._line.slice(this._column + part.length);
        this._column += part.length;
      }
    }
    if (settled) this._settle(settled);
    this._current.data = this._line;
  }

  _settle(text) {
    this._append(text);
    this._length += text.length;
    if (this._length <= MOST) return;
    this._current.remove();
    const kept = this._element.textContent.slice(-MOST / 2);
    this._element.replaceChildren(this._current);
    this._last = null;
    this._length = 0;
    this._settle(`(earlier output was dropped)\n${kept.slice(kept.indexOf('\n') + 1)}`);
  }

  _append(text) {
    this._add(text, '');
  }

  /** Adds to the last piece of the text, or begins another where that has another class. */
  _add(text, className) {
    if (this._last?.className !== className) {
      const node = document.createTextNode('');
      let piece = node;
      if (className) {
        piece = document.createElement('span');
        piece.className = className;
        piece.append(node);
      }
      this._current.before(piece);
      this._last = { className, node };
    }
    this._last.node.appendData(text);
  }
}

/**
 * Text that quotes code, as tracebacks and warnings do. What is indented keeps its columns, for the marks under a line
 * point at places in it; what is not is a sentence, and has a class of its own so that it can wrap.
 */
export class QuotingBlock extends TextBlock {
  _append(text) {
    for (const line of text.match(/[^\n]*\n/g)) this._add(line, /^\s/.test(line) ? '' : 'said');
  }
}
