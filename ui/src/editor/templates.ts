// Templates inside strings: `{{ … }}` and `{% … %}` stand out, and so do the names and filters in them.
import { Decoration, type DecorationSet, type EditorView, MatchDecorator, ViewPlugin, type ViewUpdate } from "@codemirror/view";

const TEMPLATE = /\{\{.*?\}\}|\{%.*?%\}/g;
const WORD = /("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(\|\s*[A-Za-z_]\w*)|\b(and|or|not|in|is|if|else|true|false|none)\b|(\b\d[\d_.]*\b)/g;
const mark = (name: string): Decoration => Decoration.mark({ class: `cm-template-${name}` });
const [WHOLE, TEXT, FILTER, KEYWORD, NUMBER] = ["whole", "text", "filter", "keyword", "number"].map(mark) as [Decoration, Decoration, Decoration, Decoration, Decoration];

const matcher = new MatchDecorator({
  regexp: TEMPLATE,
  decorate: (add, from, to, match) => {
    add(from, to, WHOLE);
    for (const one of match[0].matchAll(WORD)) {
      const start = from + one.index;
      add(start, start + one[0].length, one[1] ? TEXT : one[2] ? FILTER : one[3] ? KEYWORD : NUMBER);
    }
  },
});

export const templates = ViewPlugin.fromClass(
  class {
    marks: DecorationSet;
    constructor(view: EditorView) {
      this.marks = matcher.createDeco(view);
    }
    update(update: ViewUpdate) {
      this.marks = matcher.updateDeco(update, this.marks);
    }
  },
  { decorations: (found) => found.marks },
);
