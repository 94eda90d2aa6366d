// Colours code. Small on purpose: it knows comments, strings, numbers and keywords, and no grammar.

/** Blocks that are longer stay as they are, in UTF-16 units. */
const MOST = 50_000;

const words = (text) => new Set(text.split(" "));

const SLASHES = /\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)/;
const HASHES = /#[^\n]*/;
const DASHES = /--[^\n]*/;
const QUOTES = /"(?:\\[^]|[^"\\\n])*"?|'(?:\\[^]|[^'\\\n])*'?/;
const TEMPLATES = new RegExp(`${QUOTES.source}|\`(?:\\\\[^]|[^\`\\\\])*\`?`);
const TRIPLES = new RegExp(`"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|${QUOTES.source}`);
// A ' begins a character or a lifetime.
const RUST_QUOTES = /"(?:\\[^]|[^"\\])*"?|'(?:\\[^\n]{1,8}?|[^'\\\n])'/;
const NOTHING = /(?!)/;

const C = "break case const continue default do else enum extern for goto if return sizeof static struct switch typedef union volatile while";
const CURLY = `${C} abstract as async await bool catch class constructor delete export extends false final finally from function implements import in instanceof interface internal is let namespace new null of operator override package private protected public readonly super template this throw throws true try typeof undefined using var virtual void yield int long short char float double boolean string unsigned signed auto`;

/** What begins comments and strings, and what is a keyword. `anyCase`: keywords in either case. */
const LANGUAGES = {
  javascript: { comment: SLASHES, string: TEMPLATES, keywords: words(`${CURLY} get set type any number unknown never keyof declare`) },
  java: { comment: SLASHES, string: TRIPLES, keywords: words(`${CURLY} record sealed permits synchronized transient native when fun val object companion data lateinit foreach lock out ref params partial get set where def trait extension mixin late required`) },
  c: { comment: new RegExp(`${SLASHES.source}|(?<=^|\\n)[ \\t]*#[^\\n]*`), string: QUOTES, keywords: words(`${CURLY} constexpr noexcept nullptr decltype concept requires inline register restrict friend mutable explicit size_t uint8_t uint32_t uint64_t int32_t int64_t`) },
  rust: { comment: SLASHES, string: RUST_QUOTES, keywords: words("as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while bool char str u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64") },
  go: { comment: SLASHES, string: TEMPLATES, keywords: words("break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var true false nil iota string bool byte rune error any int int8 int16 int32 int64 uint uint8 uint32 uint64 float32 float64 make len cap append") },
  swift: { comment: SLASHES, string: TRIPLES, keywords: words("actor any as associatedtype async await break case catch class continue default defer deinit do else enum extension fallthrough false fileprivate final for func guard if import in indirect init inout internal is lazy let mutating nil nonisolated open operator override private protocol public repeat rethrows return self Self some static struct subscript super switch throw throws true try typealias unowned var weak where while") },
  php: { comment: new RegExp(`${SLASHES.source}|${HASHES.source}`), string: QUOTES, keywords: words(`${CURLY} array echo elseif endif endforeach endwhile fn foreach global include isset match mixed print require require_once trait unset use`) },
  python: { comment: HASHES, string: TRIPLES, keywords: words("and as assert async await break case class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return self True try while with yield") },
  ruby: { comment: HASHES, string: QUOTES, keywords: words("alias and begin break case class def defined do else elsif end ensure false for if in module next nil not or redo rescue retry return self super then true undef unless until when while yield require attr_accessor puts") },
  shell: { comment: /(?<=^|\s)#[^\n]*/, string: /"(?:\\[^]|[^"\\])*"?|'[^']*'?/, keywords: words("if then else elif fi case esac for in do done while until function select return exit export local readonly set unset shift source alias echo cd sudo FROM RUN CMD COPY ADD ENV ARG WORKDIR ENTRYPOINT EXPOSE USER VOLUME LABEL") },
  config: { comment: /(?<=^|\s)[#;][^\n]*/, string: TRIPLES, keywords: words("true false null yes no on off"), key: /(?<=^|\n)[ \t]{0,60}(?:- )?[\w.-]{1,60}(?=[ \t]{0,20}[:=])|(?<=^|\n)\[{1,2}[^[\]\n]{1,80}\]{1,2}/ },
  json: { comment: SLASHES, string: /"(?:\\[^]|[^"\\\n])*"?/, keywords: words("true false null"), key: /"(?:\\[^]|[^"\\\n])*"(?=\s*:)/ },
  sql: { comment: new RegExp(`${DASHES.source}|\\/\\*[^]*?(?:\\*\\/|$)`), string: /'(?:''|[^'])*'?|"[^"\n]*"?/, anyCase: true, keywords: words("add all alter and any as asc begin between by case check column commit constraint create cross cube database default delete desc distinct drop else end except exists explain false foreign from full function grant group having if in index inner insert integer intersect into is join key left like limit not null offset on or order outer over partition primary references returning revoke right rollback select set table text then to trigger true truncate union unique update using values varchar view when where window with") },
  lua: { comment: /--\[\[[^]*?(?:\]\]|$)|--[^\n]*/, string: QUOTES, keywords: words("and break do else elseif end false for function goto if in local nil not or repeat return then true until while") },
  haskell: { comment: DASHES, string: /"(?:\\[^]|[^"\\\n])*"?/, keywords: words("case class data deriving do else family forall foreign if import in infix infixl infixr instance let module newtype of qualified then type where") },
  markup: { comment: /<!--[^]*?(?:-->|$)/, string: /"[^"<>]*"|'[^'<>]*'/, keywords: words(""), key: /<\/?[\w:.-]+|\/?>/ },
  css: { comment: SLASHES, string: QUOTES, keywords: words(""), key: /(?<=[\s{;])[\w-]{1,40}(?=: )|@[\w-]{1,40}/ },
  diff: { comment: /(?<=^|\n)(?:@@|diff|index)[^\n]*/, string: NOTHING, keywords: words(""), lines: true },
};

const NAMES = {
  javascript: "js jsx mjs cjs ts tsx typescript node",
  java: "kotlin kt scala csharp cs c# dart groovy",
  c: "cpp c++ cc h hpp objc objective-c cuda glsl arduino",
  rust: "rs",
  go: "golang",
  python: "py python3 ipython pycon",
  ruby: "rb",
  shell: "sh bash zsh fish console shell-session dockerfile docker makefile make powershell ps1",
  config: "toml yaml yml ini conf cfg properties env nginx hcl terraform",
  json: "json5 jsonc jsonl",
  sql: "postgres postgresql mysql sqlite plsql",
  haskell: "hs elm",
  markup: "html xml svg xhtml vue svelte",
  css: "scss less sass",
  diff: "patch",
};

const BY_NAME = new Map(Object.keys(LANGUAGES).flatMap((name) => [name, ...(NAMES[name]?.split(" ") ?? [])].map((alias) => [alias, name])));

/** Puts what is known of the code in `element` into spans, with the class of each kind. Its text stays the same. */
export function colour(element, language) {
  const known = LANGUAGES[BY_NAME.get(language.toLowerCase())];
  const text = element.textContent;
  if (!known || text.length > MOST) return;
  element.replaceChildren(...pieces(text, known));
}

function pieces(text, language) {
  const found = [];
  let plain = 0;
  const add = (from, to, kind) => {
    if (from > plain) found.push(text.slice(plain, from));
    found.push(Object.assign(document.createElement("span"), { className: kind, textContent: text.slice(from, to) }));
    plain = to;
  };
  for (const match of text.matchAll(pattern(language))) {
    const kind = kindOf(match, language, text);
    if (kind) add(match.index, match.index + match[0].length, kind);
  }
  found.push(text.slice(plain));
  return found.filter((piece) => piece !== "");
}

function kindOf({ 0: found, index, groups }, { keywords, anyCase }, text) {
  if (groups.comment !== undefined) return "c";
  if (groups.key !== undefined) return "k";
  if (groups.line !== undefined) return found.startsWith("+") ? "ins" : "del";
  if (groups.string !== undefined) return "s";
  if (groups.number !== undefined) return "n";
  if (keywords.has(anyCase ? found.toLowerCase() : found)) return "k";
  if (text[index + found.length] === "(") return "f";
  return /^[A-Z]\w*[a-z]/.test(found) && !anyCase ? "t" : null;
}

/** All kinds at once, so that a mark in a string begins no comment. */
function pattern(language) {
  return (language.pattern ??= new RegExp(
    [
      `(?<comment>${language.comment.source})`,
      `(?<key>${(language.key ?? NOTHING).source})`,
      `(?<line>${language.lines ? "(?<=^|\\n)[+-][^\\n]*" : "(?!)"})`,
      `(?<string>${language.string.source})`,
      "(?<number>\\b0x[\\da-fA-F_]+|\\b\\d[\\d_]*(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)",
      "(?<word>[\\p{L}_$][\\p{L}\\p{N}_$]*)",
    ].join("|"),
    "gu",
  ));
}
