// What the engine answers (bindings/wasm/page.h). Numbers that people see are texts; the page hands
// them on.
import type {Problem} from './engine';

export interface Cell {
  text: string;
  id?: string;
  exact?: string;
  hidden?: string;  // the reason
  moved?: number;
  was?: string;
  direction?: number;
}

export interface Sum {
  id: string;
  text: string;
  exact: string;
  ok: boolean;
  empty: boolean;
}

export interface LongRow {
  top: {key: number; label: string; score: string; cell: Cell}[];
  others: Cell;
  other_count: number;
}

export interface Table {
  tap: string;
  name: string;
  symbol: string;
  leading: string;
  head: number;
  repeated: boolean;
  rows_named: string[];
  columns_named: string[];
  row_index: number[];
  shape: number[];
  rows: Cell[][];
  long_rows: LongRow[];
  sums: Sum[];
  row_notes: string[];
}

export interface Section {
  number: number;
  title: string;
  formula: string;
  shape: string;
  remark: string;
  beside: boolean;
  tables: Table[];
  lines: string[];
}

export interface Document {
  name: string;
  title: string;
  question: string;
  preamble: string[];
  sections: Section[];
  checks: {id: string; text: string; ok: boolean; detail: string}[];
  footnotes: string[];
  notes: string[];
}

export interface SetNumber {
  matrix: string;
  at: number[];
  to: string;
}

export interface EngineEdit {
  set?: SetNumber[];
  hide?: number[];
  mask?: string;
  scale?: string;
  empty_row?: string;
}

export interface Drill {
  drill: number;
  question: string;
  edit: EngineEdit;
}

export interface Mistake {
  id: string;
  title: string;
  done: string;
  tell_tale: string;
  cause: string;
  fix: string;
  fix_code: string;
  hidden_because: string;
  stops_because: string;
  document: Document;
}

export interface View {
  serial: number;
  inputs: string[];
  from: string;
  ours: string[];
  labels: {q: string[]; k: string[]};
  drills: Drill[];
  refused: Problem[];
  moved?: {moved: number; of: number; words: string};
  why?: string[];
  by_hand?: string[];
  document: Document;
  mask: {kind: string; rows: string[][]} | null;
  scale: {words: string; exact: string} | null;
  steps: {tap: string; op: string; formula: string; sentence: string}[];
}

export interface Origin {
  from: string[];
  feeds: string[];
}

export interface Explained {
  rows: {head?: number; query: number; label: string; keys: {key: number; line: string}[]}[];
}

export interface Derived {
  formula: string;
  sentence: string;
  lines: string[];
  terms: {label: string; left: string; right: string; product: string; running: string; exact: string; share: string}[];
}

export interface Graded {
  cells: {id: string; ticked: boolean; moved: boolean; right: boolean}[];
  right: boolean;
  words: string;
  answer: string;
  why: string[];
}

export interface Claims {
  claims: {says: string; holds: boolean; found: string; cell: string; edit?: EngineEdit}[];
}

export interface Shuffled {
  edit: EngineEdit;
  moves_along: boolean;
  difference: string;
  words: string;
}
