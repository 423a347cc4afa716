// Embeddings of two numbers as points, which can be moved, with an arrow to what attention makes of
// each token. Numbers are the engine's; here they only become places on the picture.
import './plane.css';

import {useSignal} from '@preact/signals';

import type {Table, View} from '../answers';
import {cellPlace, editPlace} from '../ids';
import {caseText} from '../lessons';
import {caseName, edits, keepAlong, kept, outcome, setNumber, slideNumber, stepped} from '../store';

interface Point { x: number; y: number }
interface Named extends Point { name: string; text: string; places: readonly [string, string] | undefined }

const kSide = 30;  // steps of 0.1 that a point moves to either side at once
const kPixels = 320;

const tablesOf = (view: View) => view.document.sections.flatMap(({tables}) => tables);
const isPlane = ({shape, head, rows}: Table) => shape.length === 2 && shape[1] === 2 && head === -1 && rows.length > 0;
const find = (view: View, tap: string) => tablesOf(view).find((table) => table.tap === tap && isPlane(table));

function pointsOf(view: View, table: Table | undefined): Named[] {
  return (table?.rows ?? []).flatMap((row, n) => {
    const [a, b] = row, x = Number(a?.exact), y = Number(b?.exact);
    if (!Number.isFinite(x) || !Number.isFinite(y)) return [];
    const [left, right] = [a, b].map((cell) => cellPlace(cell?.id ?? ''));
    const isInput = view.inputs.includes(table!.tap) && left && right;
    const rank = table!.shape.length;
    return [{
      x, y, name: table!.rows_named[n] ?? String(n), text: `(${a!.text}, ${b!.text})`,
      places: isInput ? [editPlace(left, rank), editPlace(right, rank)] as const : undefined,
    }];
  });
}

interface Drawn {
  points: Named[];
  arrows: {name: string; from: Named; to: Named}[];
  directions: Named[];
}

function drawnOf(view: View): Drawn {
  const words = find(view, 'E'), rows = find(view, 'X');
  const tokens = pointsOf(view, rows), outs = pointsOf(view, find(view, 'out'));
  const areRows = outs.length === tokens.length;
  return {
    points: words ? pointsOf(view, words) : tokens,
    arrows: areRows ? tokens.map((from, n) => ({name: from.name, from, to: outs[n]!})) : [],
    directions: pointsOf(view, find(view, 'differences')),
  };
}

// The square around all points and the axes, in the points' own units.
interface Frame { left: number; top: number; side: number }
function frameOf(all: readonly Point[]): Frame {
  const low = (a: number, b: number) => (a < b ? a : b), high = (a: number, b: number) => (a > b ? a : b);
  const xs = all.map(({x}) => x), ys = all.map(({y}) => y);
  const left = xs.reduce(low, 0), right = xs.reduce(high, 1), bottom = ys.reduce(low, 0), top = ys.reduce(high, 1);
  const side = high(right - left, top - bottom) * 1.4;
  return {left: (left + right - side) / 2, top: (top + bottom + side) / 2, side};
}
const placed = ({left, top, side}: Frame, {x, y}: Point): Point =>
  ({x: ((x - left) / side) * kPixels, y: ((top - y) / side) * kPixels});

function Line({frame, from, to, name}: {frame: Frame; from: Point; to: Point; name: string}) {
  const a = placed(frame, from), b = placed(frame, to);
  return <line class={name} x1={a.x} y1={a.y} x2={b.x} y2={b.y} />;
}

function Axes({frame, names}: {frame: Frame; names: readonly string[]}) {
  const {left, top, side} = frame, right = left + side, bottom = top - side;
  return (
    <>
      <Line name="axis" frame={frame} from={{x: left, y: 0}} to={{x: right, y: 0}} />
      <Line name="axis" frame={frame} from={{x: 0, y: bottom}} to={{x: 0, y: top}} />
      {[{x: 1, y: 0}, {x: 0, y: 1}].map((unit) => {
        const at = placed(frame, unit);
        return (
          <g key={unit.x} class="unit"><circle cx={at.x} cy={at.y} r={2} />
            <text x={at.x + (unit.x ? 0 : -12)} y={at.y + (unit.x ? 16 : 4)}>1</text></g>);
      })}
      <text class="name" x={kPixels - 6} y={kPixels - 8} text-anchor="end">{names[0]}</text>
      <text class="name" x={6} y={16}>{names[1]}</text>
    </>
  );
}

interface Box { left: number; top: number; right: number; bottom: number }
const kLetter = 7.5, kLine = 14;

// Names beside their points, on the first side where they lie on no other.
function labelled(points: readonly Named[], frame: Frame): {point: Named; at: Point; label: Point}[] {
  const taken: Box[] = [];
  return points.map((point) => {
    const at = placed(frame, point), width = point.name.length * kLetter;
    const boxes = [[7, -6], [-7 - width, -6], [7, 16], [-7 - width, 16]].map(([x, y]): Box =>
      ({left: at.x + x!, right: at.x + x! + width, top: at.y + y! - kLine, bottom: at.y + y!}));
    const isFree = (box: Box) => box.left >= 0 && box.right <= kPixels && taken.every((other) =>
      box.right < other.left || other.right < box.left || box.bottom < other.top || other.bottom < box.top);
    const box = boxes.find(isFree) ?? boxes[0]!;
    taken.push(box);
    return {point, at, label: {x: box.left, y: box.bottom}};
  });
}

// A point that is held moves by steps of 0.1, each made by the engine. All of it is one change.
interface Held { texts: readonly [string[], string[]]; at: Point; scale: number; places: readonly [string, string]; isFirst: boolean }
let held: Held | undefined;

function walk(from: string): string[] {
  const side = (by: string) => {
    const texts: string[] = [];
    for (let text = stepped(from, by); text !== undefined && texts.length < kSide; text = stepped(text, by)) texts.push(text);
    return texts;
  };
  return [...side('-0.1').reverse(), from, ...side('0.1')];
}

function hold(event: PointerEvent, point: Named, frame: Frame): void {
  const svg = (event.currentTarget as SVGElement).ownerSVGElement!;
  const texts = point.places?.map((place) => numberAt(place));
  if (!point.places || texts?.[0] === undefined || texts[1] === undefined) return;
  (event.currentTarget as SVGElement).setPointerCapture(event.pointerId);
  held = {
    texts: [walk(texts[0]), walk(texts[1])], at: {x: event.clientX, y: event.clientY}, places: point.places, isFirst: true,
    scale: frame.side / svg.getBoundingClientRect().width,
  };
  event.preventDefault();
}

// The text of an input as it is now.
function numberAt(place: string): string | undefined {
  for (const {rows, shape} of outcome.peek() ? tablesOf(outcome.peek()!.view) : [])
    for (const row of rows)
      for (const cell of row) {
        const at = cellPlace(cell.id ?? '');
        if (at && editPlace(at, shape.length) === place) return cell.text;
      }
  return undefined;
}

function drag(event: PointerEvent): void {
  if (!held) return;
  const {scale, at, texts, places} = held;
  const moved = [(event.clientX - at.x) * scale, (at.y - event.clientY) * scale];
  places.forEach((place, n) => {
    const steps = (kSide + moved[n]! * 10 + 0.5) | 0;
    const text = texts[n]![steps < 0 ? 0 : steps >= texts[n]!.length ? texts[n]!.length - 1 : steps];
    if (text === undefined || text === numberAt(place)) return;
    (held!.isFirst ? setNumber : slideNumber)(place, text);
    held!.isFirst = false;
  });
}

// Of the case, or as somebody renamed them.
function axisNames(): string[] {
  const renamed = kept('axes');
  if (renamed !== undefined) return renamed.split(',').slice(0, 2);
  const text = edits.value.base ?? caseText(caseName.value) ?? '', found = /"axes"\s*:\s*(\[[^\]]*\])/.exec(text);
  try {
    return (JSON.parse(found?.[1] ?? '[]') as unknown[]).map(String);
  } catch {
    return [];
  }
}

function AxisName({n, names}: {n: 0 | 1; names: readonly string[]}) {
  return (
    <label>{n === 0 ? 'across' : 'up'}{' '}
      <input size={10} data-testid={`axis-${n}`} value={names[n] ?? ''} autocomplete="off" placeholder={`column ${n}`}
        onChange={(event) => {
          const text = event.currentTarget.value.replaceAll(',', ' ').trim();
          const next = [names[0] ?? '', names[1] ?? ''];
          next[n] = text;
          keepAlong('axes', next.join(','));
        }} />
    </label>
  );
}

export default function Plane() {
  const frozen = useSignal<Frame | undefined>(undefined);
  const view = outcome.value?.view;
  if (!view) return null;
  const {points, arrows, directions} = drawnOf(view);
  if (points.length === 0) return <p class="soft">Nothing here has two numbers a row.</p>;
  const frame = frozen.value ?? frameOf([...points, ...arrows.map(({to}) => to), ...directions]);
  const names = axisNames();
  const told = [...points.map(({name, text}) => `${name} ${text}`), ...arrows.map(({name, to}) => `${name} becomes ${to.text}`),
                ...directions.map(({text}) => `difference ${text}`)].join('; ');
  const letGo = () => {
    held = undefined;
    frozen.value = undefined;
  };
  return (
    <>
      <svg class="plane" viewBox={`0 0 ${kPixels} ${kPixels}`} role="img" aria-label={told} data-testid="plane"
        onPointerMove={drag} onPointerUp={letGo} onPointerCancel={letGo}>
        <defs><marker id="plane-head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" /></marker></defs>
        <Axes frame={frame} names={names} />
        {arrows.filter(({from, to}) => from.x !== to.x || from.y !== to.y).map(({name, from, to}) => <Line key={name} name="arrow" frame={frame} from={from} to={to} />)}
        {directions.map((to) => <Line key={to.name} name="arrow" frame={frame} from={{x: 0, y: 0}} to={to} />)}
        {labelled(points, frame).map(({point, at, label}) => (
          <g key={point.name} class={point.places ? 'word held' : 'word'} data-testid={`plane-${point.name}`} data-text={point.text}
            onPointerDown={(event) => {
              frozen.value = frame;
              hold(event, point, frame);
            }}>
            <circle cx={at.x} cy={at.y} r={12} class="grip" />
            <circle cx={at.x} cy={at.y} r={4} />
            <text x={label.x} y={label.y}>{point.name}</text>
          </g>))}
      </svg>
      <p class="soft">{arrows.length > 0 && 'Arrows go from a token to its output. '}{directions.length > 0 && 'Arrows from the middle are the differences. '}
        {points.some(({places}) => places) && 'A word can be dragged; its numbers can be typed in its row, too.'}</p>
      <p class="options"><AxisName n={0} names={names} /> <AxisName n={1} names={names} /></p>
      <p class="soft">What the axes are called is a reading of the numbers, not a fact in them.</p>
    </>
  );
}
