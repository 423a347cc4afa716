// What can be taken along: the command's bytes as files, the link, the case as a command or program.
import {useSignal} from '@preact/signals';

import {asCode, caseName, exported} from '../store';
import {inWords} from './more';
import {save} from './saving';

const kFormats = [
  ['json', 'JSON', 'application/json', 'json'], ['csv', 'CSV', 'text/csv', 'csv'],
  ['md', 'Markdown', 'text/markdown', 'md'], ['latex', 'LaTeX', 'application/x-tex', 'tex'],
  ['html', 'HTML', 'text/html', 'html'], ['svg', 'SVG', 'image/svg+xml', 'svg'],
  ['text', 'Text', 'text/plain', 'txt'],
] as const;

export function Exports() {
  const trouble = useSignal('');
  const write = async (format: string, type: string, ending: string) => {
    const answer = await exported(format);
    trouble.value = answer.ok ? '' : inWords(answer.problems);
    if (answer.ok) save(answer.bytes, `${caseName.peek()}.${ending}`, type);
  };
  return (
    <details class="menu">
      <summary data-testid="export">export</summary>
      <div>
        {kFormats.map(([format, name, type, ending]) => (
          <button type="button" key={format} data-testid={`export-${format}`}
            onClick={() => void write(format, type, ending)}>{name}</button>))}
        {trouble.value && <p role="alert" class="bad">{trouble.value}</p>}
      </div>
    </details>
  );
}

// False: it may not be written to, as in a frame.
async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

export function Share() {
  const said = useSignal('');
  return (
    <>
      <button type="button" data-testid="share" onClick={async () => {
        said.value = await copied(location.href) ? 'link copied' : 'the link is in the address bar';
      }}>share</button>
      <span role="status" class="soft">{said.value}</span>
    </>
  );
}

const kLanguages = [['command', 'command'], ['numpy', 'NumPy'], ['pytorch', 'PyTorch'], ['cpp', 'C++']] as const;

// The case as a line for a terminal, or as a program; also shown, to be read before it is run.
export function Copies() {
  const text = useSignal(''), said = useSignal('');
  const write = async (language: string) => {
    const answer = await asCode(language);
    text.value = answer.ok ? (JSON.parse(answer.bytes) as {text: string}).text : '';
    said.value = !answer.ok ? inWords(answer.problems)
        : await copied(text.value) ? 'copied:' : 'to copy:';
  };
  return (
    <details class="menu">
      <summary data-testid="copy">copy as</summary>
      <div>
        {kLanguages.map(([language, name]) => (
          <button type="button" key={language} data-testid={`copy-${language}`} onClick={() => void write(language)}>{name}</button>))}
        <p role="status">{said.value}</p>
        {text.value && <pre data-testid="copied" tabIndex={0}>{text.value}</pre>}
      </div>
    </details>
  );
}
