// `glasshead view`, where the page comes from it: its token, and the cases named on its command
// line. Without a token there is no server, and none is asked for.
import type {Answer, Problem} from './engine';

const kTokenKey = 'glasshead-token';

let token = '';

export const hasServer = (): boolean => token !== '';

// Reading it can be forbidden, as in a frame without an origin.
function stored(): string {
  try {
    return sessionStorage.getItem(kTokenKey) ?? '';
  } catch {
    return '';
  }
}

function store(value: string): void {
  try {
    sessionStorage.setItem(kTokenKey, value);
  } catch {
    // it is asked for again after a reload
  }
}

// Takes the token out of an address: it never stays there, so that nobody passes it on.
export function withoutToken(fragment: string): string {
  const found = /[?&]token=([0-9a-f]+)/.exec(fragment);
  if (found) store(token = found[1]!);
  else token ||= stored();
  return fragment.replace(/([?&])token=[0-9a-f]+(&?)/, (_, before: string, after: string) => (after ? before : ''));
}

async function get(path: string): Promise<Response> {
  const response = await fetch(`api/v1/${path}`, {headers: {'Glasshead-Token': token}});
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  return response;
}

// The cases that the server was started with, by name. Empty without one, or when it is gone.
export async function serverCases(): Promise<[name: string, text: string][]> {
  if (token === '') return [];
  try {
    const {cases} = await (await get('info')).json() as {cases: string[]};
    return await Promise.all(cases.map(async (name): Promise<[string, string]> =>
        [name, await (await get(`cases/${encodeURIComponent(name)}`)).text()]));
  } catch {
    return [];
  }
}

// What is too large for the page's own engine, asked of the server: the same request, the same
// bytes. That it is gone is a problem like any other.
export async function postCall({call, ...fields}: {call: string}): Promise<Answer> {
  let response: Response;
  try {
    response = await fetch(`api/v1/${call}`, {
      method: 'POST', headers: {'Glasshead-Token': token, 'Content-Type': 'application/json'},
      body: JSON.stringify(fields),
    });
  } catch {
    return {ok: false, problems: [{where: 'server-gone', what: 'glasshead view no longer answers; start it again and reload'}]};
  }
  const bytes = await response.text();
  if (response.ok) return {ok: true, bytes};
  try {
    const {code, message, problems} = JSON.parse(bytes) as {code: string; message: string; problems?: Problem[]};
    return {ok: false, problems: problems ?? [{where: code, what: message}]};
  } catch {
    return {ok: false, problems: [{where: 'server-gone', what: `the server's answer, ${response.status}, is cut short`}]};
  }
}
