import { EditorView } from '@codemirror/view';

/**
 * Types over a selection by the editor's own means: where the browser does it, it joins the lines by spans with inline
 * styles, which the page's policy refuses and reports.
 */
export const typeOver = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { data, inputType } = event;
    const { main } = view.state.selection;
    if (inputType !== 'insertText' || data === null || main.empty || view.composing) return false;
    event.preventDefault();
    const insert = () =>
      view.state.update(view.state.replaceSelection(data), { userEvent: 'input.type', scrollIntoView: true });
    const handlers = view.state.facet(EditorView.inputHandler);
    if (!handlers.some((handler) => handler(view, main.from, main.to, data, insert))) view.dispatch(insert());
    return true;
  },
});
