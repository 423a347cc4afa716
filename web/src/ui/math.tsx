// The engine's formulas, which are lines of text, as MathML: roots, fractions, what stands above and
// below. A library that sets LaTeX weighs forty times this file, and there is no LaTeX to set here.
import type {ComponentChildren} from 'preact';

// Undefined: words, not a formula.
class Words extends Error {}

const kTokens = /\s*([\p{Lu}\p{Ll}][\p{Lu}\p{Ll}\d]*|\d+(?:\.\d+)?|[=·+−\-()|,√∞/≈])((?:_[\p{Lu}\p{Ll}\d]+)*)([ᵀ²]?)([ₕ]?)/uy;
const kAbove: Record<string, string> = {ᵀ: 'T', '²': '2'};
const kFunctions = ['exp', 'ln', 'max', 'mean', 'argmax', 'softmax', 'f'];

interface Token { text: string; below: string; above: string; isApart: boolean }

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  kTokens.lastIndex = 0;
  while (kTokens.lastIndex < text.length) {
    const start = kTokens.lastIndex, found = kTokens.exec(text);
    if (!found) throw new Words();
    const [whole, token, below, above, head] = found;
    const isApart = text[start + whole.length - (token! + below! + above! + head!).length - 1] === ' ' && text[kTokens.lastIndex] === ' ';
    tokens.push({text: token!, below: below!.slice(1) || (head === 'ₕ' ? 'h' : ''), above: kAbove[above!] ?? '', isApart});
  }
  return tokens;
}

const isName = (token: Token | undefined) => token !== undefined && /^\p{L}/u.test(token.text);

class Parser {
  private at = 0;
  constructor(private readonly tokens: readonly Token[]) {}

  whole(): ComponentChildren {
    const parts: ComponentChildren[] = [this.quotient()];
    while (this.at < this.tokens.length) {
      const {text} = this.next();
      if (!/^[=+−≈,-]$/.test(text)) throw new Words();
      parts.push(<mo>{text}</mo>, this.quotient());
    }
    return <>{parts}</>;
  }

  // "D·Dᵀ / |D||D|": with room around it the bar goes under all of the product.
  private quotient(): ComponentChildren {
    const over = this.product();
    if (!(this.peek()?.text === '/' && this.peek()!.isApart)) return over;
    this.next();
    return <mfrac><mrow>{over}</mrow><mrow>{this.product()}</mrow></mfrac>;
  }

  private product(): ComponentChildren {
    const parts: ComponentChildren[] = [this.ratio()];
    for (let token = this.peek(); token; token = this.peek()) {
      if (token.text === '·') parts.push(<mo>{this.next().text}</mo>, this.ratio());
      else if (token.text === '|') parts.push(this.ratio());
      else break;
    }
    return <>{parts}</>;
  }

  private ratio(): ComponentChildren {
    const over = this.factor();
    if (!(this.peek()?.text === '/' && !this.peek()!.isApart)) return over;
    this.next();
    return <mfrac><mrow>{over}</mrow><mrow>{this.factor()}</mrow></mfrac>;
  }

  private factor(): ComponentChildren {
    const token = this.next();
    if (token.text === '√') {
      const isGroup = this.peek()?.text === '(';
      return <msqrt>{isGroup ? this.group(false) : this.factor()}</msqrt>;
    }
    if (token.text === '−' || token.text === '-') return <><mo>{token.text}</mo>{this.factor()}</>;
    if (token.text === '|') return this.absolute();
    if (token.text === '(') {
      --this.at;
      return this.group(true);
    }
    if (!/^[\p{L}\d∞]/u.test(token.text)) throw new Words();
    const name = /^\d/.test(token.text) ? <mn>{token.text}</mn> : <mi>{token.text}</mi>;
    const set = token.below && token.above
      ? <msubsup>{name}<mi>{token.below}</mi><mi>{token.above}</mi></msubsup>
      : token.below ? <msub>{name}<mi>{token.below}</mi></msub>
      : token.above ? <msup>{name}<mi>{token.above}</mi></msup> : name;
    if (this.peek()?.text === '(' && isName(token)) return <>{set}{this.group(true)}</>;
    if (isName(this.peek()) && this.isOperator(token)) return <>{set}<mspace width="0.2em" />{this.factor()}</>;
    return set;
  }

  private absolute(): ComponentChildren {
    const inside = this.factor();
    this.expect('|');
    return <><mo>|</mo>{inside}<mo>|</mo></>;
  }

  private group(hasBrackets: boolean): ComponentChildren {
    this.expect('(');
    const parts: ComponentChildren[] = [this.quotient()];
    while (this.peek() && this.peek()!.text !== ')') parts.push(<mo>{this.next().text}</mo>, this.quotient());
    this.expect(')');
    return hasBrackets ? <><mo>(</mo>{parts}<mo>)</mo></> : <>{parts}</>;
  }

  // "max_j Z", "Σ_j E", "ln l": what follows belongs to it.
  private isOperator({text}: Token): boolean { return text === 'Σ' || kFunctions.includes(text); }

  private peek(): Token | undefined { return this.tokens[this.at]; }
  private next(): Token {
    const token = this.tokens[this.at++];
    if (!token) throw new Words();
    return token;
  }
  private expect(text: string): void { if (this.next().text !== text) throw new Words(); }
}

// Formulas that stand apart by two spaces are set one by one.
export function mathOf(text: string): ComponentChildren | undefined {
  if (!/[=·√/²ᵀ(]/.test(text)) return undefined;
  try {
    const parts = text.split(/ {2,}/).map((part) => <math>{new Parser(tokensOf(part)).whole()}</math>);
    return <>{parts.map((part, n) => <>{n > 0 && '  '}{part}</>)}</>;
  } catch (error) {
    if (error instanceof Words) return undefined;
    throw error;
  }
}
