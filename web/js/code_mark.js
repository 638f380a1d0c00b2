// The line of the program that raised an error: marked in the text and at its number, until the text changes.

import { Decoration, EditorView, GutterMarker, lineNumberMarkers, RangeSet, StateEffect, StateField } from '../vendor/codemirror.js';

const setLine = StateEffect.define();

class WrongNumber extends GutterMarker {
  constructor(line) {
    super();
    this._line = line;
  }

  toDOM() {
    const mark = document.createElement('strong');
    mark.className = 'wrong-line';
    mark.textContent = `✗ ${this._line}`;
    return mark;
  }
}

const field = StateField.define({
  create: () => null,
  update(line, tr) {
    for (const effect of tr.effects) if (effect.is(setLine)) return effect.value;
    return tr.docChanged ? null : line;
  },
  provide: (self) => [
    EditorView.decorations.from(self, (line) => (view) => at(view.state, line, Decoration.line({ class: 'cm-wrong-line' }))),
    lineNumberMarkers.compute([self], (state) => at(state, state.field(self), new WrongNumber(state.field(self)))),
  ],
});

export const wrongLine = field;

/** @param {number | null} line */
export function markLine(view, line) {
  const known = line !== null && line <= view.state.doc.lines;
  const effects = [setLine.of(known ? line : null)];
  if (known) effects.push(EditorView.scrollIntoView(view.state.doc.line(line).from, { y: 'nearest', yMargin: 40 }));
  view.dispatch({ effects });
}

function at(state, line, mark) {
  return line === null ? RangeSet.empty : RangeSet.of([mark.range(state.doc.line(line).from)]);
}
