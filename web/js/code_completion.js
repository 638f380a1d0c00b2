// Completion in the program's editor, from the names that Python has.

/** The text from the start of the line to `pos`, the cursor if not given. */
export function before(state, pos = state.selection.main.head) {
  const { from, text } = state.doc.lineAt(pos);
  return text.slice(0, pos - from);
}

/** A source of completions that asks the host. */
export function completeWith(host) {
  return async (context) => {
    const line = before(context.state, context.pos);
    if (!/[A-Za-z_][\w.]*$|^\s*(from|import)\b.*[ ,]$/.test(line)) return null;
    const { items, start } = await host.complete(line, context.state.doc.toString());
    if (!items.length || context.aborted) return null;
    // What stands before the last dot is in the text already.
    const dot = line.lastIndexOf('.') + 1;
    return {
      from: context.pos - line.length + Math.max(start, dot),
      options: items.map((item, i) => ({ label: item.slice(item.lastIndexOf('.') + 1), sortText: String(i).padStart(5, '0') })),
      validFor: /^\w*$/,
    };
  };
}
