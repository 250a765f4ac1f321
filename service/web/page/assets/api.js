// This module sends requests to Perlica and reads its stream of events. This browser's key signs each request (RFC
// 9421).
import * as device from './device.js';
import {t, has, language} from './i18n.js';

// root is the address from which the page was loaded. The address may have a path, for example below a proxy.
export const root = new URL('.', document.baseURI);

let self; // the device: {id, name, rights, key}
let nonce = '';
let refused = () => {};

// use makes all later requests sign with a device. The function out is called when Perlica no longer accepts the
// device.
export function use(d, out) {
	self = d;
	refused = out;
}

export const me = () => self;
export const may = (right) => Boolean(self) && self.rights.includes(right);

// Problem is an error that Perlica describes (RFC 9457). The status is 0 if there was no answer.
export class Problem extends Error {
	constructor(status, body) {
		const kind = String(body.type).split('#').pop();
		const what = has('problem.' + kind) ? t('problem.' + kind) : body.title || 'HTTP ' + status;
		super(body.detail ? status ? t('line', {what, detail: body.detail}) : body.detail : what);
		this.status = status;
		this.body = body;
		this.lost = status === 0;
	}
}

async function signature(method, url, body) {
	const digest = 'sha-256=:' + device.base64(await device.digest(body)) + ':';
	const random = device.base64url(crypto.getRandomValues(new Uint8Array(16)));
	const params = '("@method" "@authority" "@path" "@query" "content-digest");created=' + Math.floor(Date.now() / 1000) +
		';nonce="' + nonce + '.' + random + '";keyid="' + self.id + '";alg="ecdsa-p256-sha256"';
	const base = '"@method": ' + method + '\n"@authority": ' + url.host + '\n"@path": ' + url.pathname + '\n"@query": ' + (url.search || '?') +
		'\n"content-digest": ' + digest + '\n"@signature-params": ' + params;
	return {
		'Content-Digest': digest,
		'Signature-Input': 'perlica=' + params,
		'Signature': 'perlica=:' + device.base64(await device.sign(self.key, base)) + ':',
	};
}

// send makes one request and returns the response. If a 401 brings a new nonce, the server has done nothing yet. send
// then signs the request once more with this nonce.
export async function send(method, path, {query, body, headers, signal, credentials = 'omit'} = {}) {
	const url = new URL(path, root);
	for (const [key, value] of Object.entries(query || {})) {
		if (value !== undefined && value !== '' && value !== null) for (const v of [value].flat()) url.searchParams.append(key, v);
	}
	if (self && !nonce) nonce = (await fetch(new URL('healthz', root), {cache: 'no-store'}).catch(() => new Response())).headers.get('Perlica-Nonce') || '';
	const bytes = body === undefined ? new Uint8Array() : new TextEncoder().encode(JSON.stringify(body));
	for (let again = 0; ; again++) {
		const used = nonce;
		const signed = self ? await signature(method, url, bytes) : {};
		const all = {Accept: 'application/json', 'Accept-Language': language, ...headers, ...signed};
		if (body !== undefined) all['Content-Type'] = 'application/json';
		let res;
		try {
			res = await fetch(url, {method, headers: all, body: body === undefined ? undefined : bytes, signal, cache: 'no-store', credentials, redirect: 'error'});
		} catch (err) {
			if (err.name === 'AbortError') throw err;
			throw new Problem(0, {detail: String(err.message || err)});
		}
		nonce = res.headers.get('Perlica-Nonce') || nonce;
		if (res.ok) return res;
		const problem = new Problem(res.status, await res.json().catch(() => ({})));
		if (res.status === 401 && self && again === 0 && nonce !== used) continue;
		if (res.status === 401 && self) refused(problem);
		throw problem;
	}
}

export const get = async (path, query, signal) => (await send('GET', path, {query, signal})).json();
export const post = async (path, body, headers) => (await send('POST', path, {body: body === undefined ? {} : body, headers})).json().catch(() => ({}));

// silence is the longest time in milliseconds in which a stream may send nothing. A heartbeat comes every 15 s.
const silence = 35000;

// Events follows the log from a cursor on while the page is visible. Each event comes once, because the cursor moves
// only after the event was handed over.
export class Events {
	// on is {open(data), event(line), reset(data), state(word)}.
	constructor(query, after, on) {
		this.query = query;
		this.cursor = after;
		this.on = on;
		this.wait = 500;
		this.shown = () => this.look();
		document.addEventListener('visibilitychange', this.shown);
		addEventListener('online', this.shown);
		this.look();
	}

	// look opens the stream of a visible page and closes the stream of a hidden page.
	look() {
		if (this.closed) return;
		if (document.hidden) {
			this.stop();
			this.on.state('hidden');
		} else if (!this.abort) this.run();
	}

	stop() {
		clearTimeout(this.timer);
		if (this.abort) this.abort.abort();
		this.abort = undefined;
	}

	close() {
		this.closed = true;
		document.removeEventListener('visibilitychange', this.shown);
		removeEventListener('online', this.shown);
		this.stop();
	}

	async run() {
		const abort = this.abort = new AbortController();
		let problem;
		try {
			await this.read(abort);
		} catch (err) {
			problem = err;
		}
		if (this.abort !== abort) return; // stop has ended this stream
		this.abort = undefined;
		abort.abort();
		if (problem && problem.status === 410) {
			this.cursor = undefined;
			this.on.reset({});
		}
		if (problem && (problem.status === 401 || problem.status === 403 || problem.status === 404)) {
			this.on.state('refused');
			return;
		}
		this.on.state('broken');
		this.abort = {abort: () => clearTimeout(this.timer)};
		this.timer = setTimeout(() => {
			this.abort = undefined;
			this.look();
		}, this.wait);
		this.wait = Math.min(this.wait * 2, 8000);
	}

	async read(abort) {
		const query = {...this.query, after: this.cursor};
		const res = await send('GET', 'v1/events', {query, headers: {Accept: 'text/event-stream'}, signal: abort.signal});
		this.on.state('live');
		this.wait = 500;
		const reader = res.body.pipeThrough(new TextDecoderStream()).getReader();
		let rest = '';
		for (;;) {
			const timer = setTimeout(() => abort.abort(), silence);
			const {value, done} = await reader.read().finally(() => clearTimeout(timer));
			if (done) return;
			rest += value;
			const parts = rest.split('\n\n');
			rest = parts.pop();
			for (const part of parts) this.take(part);
		}
	}

	// take handles one message of the stream.
	take(part) {
		let id;
		let name = 'message';
		let data = '';
		for (const line of part.split('\n')) {
			if (line.startsWith('id:')) id = line.slice(3).trim();
			else if (line.startsWith('event:')) name = line.slice(6).trim();
			else if (line.startsWith('data:')) data += line.slice(5);
		}
		if (name === 'reset') this.on.reset(JSON.parse(data));
		else if (name === 'open') this.on.open(JSON.parse(data));
		else if (name === 'message' && data) this.on.event(JSON.parse(data));
		if (id) this.cursor = id;
	}
}

// answer sends the option that a person chose for the shown question.
export async function answer(q, option, more) {
	const text = 'perlica-answer-1\n' + q.id + '\n' + q.digest + '\n' + option + '\n';
	const signature = device.base64url(await device.sign(self.key, text));
	const path = 'v1/questions/' + encodeURIComponent(q.id) + '/answer';
	const res = await send('POST', path, {query: {project: q.project, context: q.context}, body: {option, digest: q.digest, signature, ...more}});
	return res.json();
}
