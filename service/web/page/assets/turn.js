// This module shows a turn: its input, the agent's words and tools as they arrive, and its outcome.
import {h, icon, said, replace, warn} from './dom.js';
import {t, clock, lasted, compact, money, name, has} from './i18n.js';
import {Flow} from './markdown.js';
import {diff} from './diff.js';
import {live} from './live.js';
import {Card, ending} from './question.js';

// together is the number of steps in one group. The browser does not draw groups that are far off the screen.
const together = 40;

const icons = ['read', 'edit', 'delete', 'move', 'search', 'execute', 'think', 'fetch'];

export const thoughts = {
	get shown() { return localStorage.getItem('thoughts') === 'shown'; },
	set shown(v) { localStorage.setItem('thoughts', v ? 'shown' : 'hidden'); },
};

// remark makes one line of Perlica about an event.
export const remark = (sign, kind, ...words) => h('p', {class: 'remark ' + kind}, icon(sign), h('span', ...words));

// figures shows the duration, the tokens and the cost of a run.
export function figures(r) {
	const u = r.usage || {};
	const [input, output] = [u.inputTokens ?? u.input_tokens, u.outputTokens ?? u.output_tokens];
	return [r.duration_ms > 0 && h('span', lasted(r.duration_ms)), input !== undefined && h('span', t('tokens', {in: compact(input), out: compact(output || 0)})),
		r.cost && h('span', money(r.cost.amount, r.cost.currency))];
}

// failed shows the reason why a run has no answer.
export const failed = (r) => r.error && warn(said('span', r.error.error));

// Turn is a run on the page. It shows each of its events once.
export class Turn {
	constructor(run) {
		this.id = run.run_id;
		this.last = 0; // the number of the last event
		this.open = true;
		this.tools = new Map();
		this.slots = new Map(); // the places of questions, by the question's id
		this.head = h('div.asked');
		this.steps = h('div.steps');
		this.foot = h('div');
		this.el = h('article.turn', {id: 'run-' + run.run_id, 'aria-busy': 'true'}, this.head, this.steps, this.foot);
		this.input(run);
	}

	input(run) {
		if (!run.text && !run.at) return;
		const who = [run.sender && said('b', run.sender), run.source && h('span', name('source', run.source)), run.at && h('time', {datetime: run.at}, clock(run.at))];
		const text = run.damage && !run.text ? said('p.bad', run.damage) : run.pruned ? h('p.dim', t('run.pruned')) : said('div.words', run.text);
		replace(this.head, h('div.who', who), text,
			run.attachments && run.attachments.length > 0 && h('ul.files', run.attachments.map((a) => said('li.chip', a.split('/').pop()))));
	}

	// put adds a step after the others.
	put(el) {
		if (!this.chunk || this.chunk.childElementCount >= together) {
			this.chunk = h('div.chunk');
			this.steps.append(this.chunk);
		}
		this.chunk.append(el);
		return el;
	}

	// take shows an event. It returns false if the event was shown before.
	take(line) {
		const state = line.type === 'session.held' || line.type === 'session.freed';
		if (!state && line.seq <= this.last) return false;
		if (!state) this.last = line.seq;
		const f = this['on_' + line.type.replace('.', '_')];
		if (line.type !== 'text' && f) this.settle();
		if (f) f.call(this, line);
		return true;
	}

	on_run_received(line) { this.input(line); }

	on_text(line) { this.pending = (this.pending || '') + line.text; }

	// settle shows the text that has arrived since the last call.
	settle(end = true) {
		if (this.pending) {
			if (!this.flow) {
				this.flow = new Flow();
				this.put(h('div.step', this.flow.el));
			}
			this.flow.add(this.pending);
			this.pending = '';
		}
		if (end && this.flow) {
			this.flow.end();
			this.flow = undefined;
		}
		if (end) this.thought = undefined;
	}

	on_thought(line) {
		if (!this.thinking || this.thinking !== this.chunkEnd()) {
			const words = h('div.thought.said', {dir: 'auto'});
			this.thinking = this.put(h('details.step', {open: thoughts.shown}, h('summary', t('thought')), words));
			this.thinking.words = words;
		}
		this.thinking.words.append(h('span', line.text || ''));
	}

	chunkEnd() { return this.chunk && this.chunk.lastElementChild; }

	on_tool(line) {
		const u = line.update.update || line.update;
		let tool = this.tools.get(u.toolCallId);
		if (!tool) {
			tool = new Tool();
			this.tools.set(u.toolCallId, tool);
			this.put(tool.el);
		}
		tool.take(u);
	}

	on_plan(line) {
		const entries = line.entries || [];
		const el = h('div.card.plan.step', h('h2', t('plan')), h('ul', entries.map((e) => {
			const done = {completed: '☑', in_progress: '▸'}[e.status] || '☐';
			return h('li', {class: e.status}, h('span', {'aria-hidden': 'true'}, done), h('span.unseen', name('plan', e.status || 'pending')), said('span', e.content));
		})));
		if (this.plan && this.plan.isConnected) this.plan.replaceWith(el);
		else this.put(el);
		this.plan = el;
	}

	on_question(line) {
		const el = this.put(h('div.step', remark('warn', '', t('asked.title', {title: ''}), said('span', line.title || t('question.tool')))));
		this.slots.set(line.id, {el, line});
		this.ask();
	}

	// ask shows the card of each open question in its place.
	ask() {
		for (const [id, slot] of this.slots) {
			const q = live.questions.get(id);
			if (q && !slot.card && !slot.over) {
				slot.card = new Card(q);
				replace(slot.el, slot.card.el);
			}
			if (slot.card && live.closed.has(id)) slot.card.close(live.closed.get(id));
		}
	}

	on_answer(line) {
		if (!line.id) {
			const good = line.effect === 'allow';
			this.put(remark(good ? 'check' : 'shield', good ? 'good' : '', t('decided.' + (good ? 'allow' : 'deny'), {by: name('by', line.by)}), ' ', said('span', judged(line)), line.why && [' · ', said('span', line.why)]));
			return;
		}
		const slot = this.slots.get(line.id);
		if (!slot || slot.over) return;
		slot.over = true;
		if (slot.card) {
			slot.card.close({answer: line.answer, reason: line.reason});
			return;
		}
		replace(slot.el, h('div.remark', said('span', slot.line.title || t('question.tool')), h('span.remark', ending(slot.line, {answer: line.answer, reason: line.reason}))));
	}

	on_blocked(line) { this.put(remark('shield', 'bad', t('blocked', {method: line.method}))); }

	on_update(line) { if (line.words) this.put(remark('clip', '', said('span', line.words))); }

	on_warning(line) { this.put(remark('warn', 'bad', said('span', line.detail || line.subtype))); }

	on_run_stopping(line) { this.put(remark('stop', '', t('stopping', {by: line.why || line.by || ''}))); }

	on_run_finished(line) { this.finish(line.result, line.at); }

	on_session_freed(line) {
		if (line.run_id === this.id && this.open) {
			this.open = false;
			replace(this.foot, remark('warn', 'bad', t('run.lost.why')));
		}
	}

	finish(r) {
		this.open = false;
		this.el.removeAttribute('aria-busy');
		replace(this.foot,
			failed(r),
			(r.unasked_tools || []).length > 0 && warn(t('unasked.n', {n: r.unasked_tools.length}), 'ask'),
			h('p.outcome', h('span', {class: 'chip ' + (r.is_error ? 'bad' : 'good')}, r.stopped ? t('outcome.stopped') : name('outcome', r.outcome)),
				r.stop_reason && r.stop_reason !== 'end_turn' && h('span', name('stop', r.stop_reason)),
				figures(r),
				h('a', {href: '#/run/' + encodeURIComponent(this.id) + location.hash.slice(location.hash.indexOf('?'))}, t('story'))));
	}

	drop() {
		for (const slot of this.slots.values()) if (slot.card) slot.card.drop();
	}
}

// judged describes the subject of a decision: the agent's title, and the judged commands and paths.
const judged = (line) => {
	const title = line.title || t('question.tool');
	const more = [...line.commands || [], ...line.paths || []].filter((x) => x !== title && !title.endsWith(' ' + x));
	return [title, more.join('; ')].filter(Boolean).join(': ');
};

// Tool is a tool call: one line that opens to show its content.
class Tool {
	constructor() {
		this.state = {};
		this.el = h('div.tool');
		this.parts = {icon: h('span'), title: said('span.title', ''), chip: h('span')};
	}

	take(u) {
		const before = this.state;
		for (const key of ['title', 'kind', 'status', 'content', 'locations', 'rawInput', 'rawOutput']) {
			if (u[key] !== undefined && u[key] !== null) this.state = {...this.state, [key]: u[key]};
		}
		const now = this.state;
		if (before.kind !== now.kind || !this.parts.icon.firstChild) replace(this.parts.icon, icon(icons.includes(now.kind) ? now.kind : 'other'));
		if (before.title !== now.title) replace(this.parts.title, said('span', now.title || ''));
		if (before.status !== now.status) this.status(now.status);
		this.frame();
		if (this.details && this.details.open) this.fill();
	}

	status(status) {
		const chip = this.parts.chip;
		chip.className = {completed: 'unseen', failed: 'chip bad', in_progress: 'chip run', pending: 'chip'}[status] || 'chip';
		chip.textContent = has('tool.' + status) ? t('tool.' + status) : String(status).slice(0, 20);
	}

	holds() {
		const s = this.state;
		return Boolean(s.content && s.content.length || s.locations && s.locations.length || s.rawInput !== undefined && JSON.stringify(s.rawInput) !== '{}' || s.rawOutput !== undefined);
	}

	// frame makes the line one that can be opened, as soon as the call has content.
	frame() {
		const line = [this.parts.icon, this.parts.title, this.parts.chip];
		if (!this.holds()) {
			if (!this.plain) replace(this.el, this.plain = h('div.summary', line));
			return;
		}
		if (this.details) return;
		this.details = h('details.tool', {ontoggle: () => this.details.open && this.fill()}, h('summary', line));
		this.el.replaceWith(this.details);
		this.el = this.details;
	}

	// fill shows the content of the call. Before it is opened, the content is only stored.
	fill() {
		const s = this.state;
		const parts = [];
		for (const c of s.content || []) {
			if (c.type === 'diff') parts.push(diff(c.path || '', c.oldText, c.newText));
			else if (c.type === 'content' && c.content && c.content.text !== undefined) parts.push(output(c.content.text));
			else parts.push(output(JSON.stringify(c, null, 2)));
		}
		const where = (s.locations || []).map((l) => said('li.chip.mono', l.path + (l.line ? ':' + l.line : ''), {dir: 'ltr'}));
		const facts = [];
		if (s.rawInput !== undefined) facts.push(h('h2.small.dim', t('tool.input')), output(typeof s.rawInput === 'string' ? s.rawInput : JSON.stringify(s.rawInput, null, 2)));
		if (s.rawOutput !== undefined && !parts.length) facts.push(h('h2.small.dim', t('tool.output')), output(typeof s.rawOutput === 'string' ? s.rawOutput : JSON.stringify(s.rawOutput, null, 2)));
		const inside = h('div.inside', where.length > 0 && h('ul.files', where), facts, parts);
		if (this.details.lastElementChild.tagName !== 'SUMMARY') this.details.lastElementChild.remove();
		this.details.append(inside);
	}
}

// most is the number of characters of an output that the page shows at once.
const most = 100000;

function output(text) {
	const el = h('pre.said', {dir: 'auto', tabindex: '0'}, text.slice(0, most));
	if (text.length <= most) return el;
	const button = h('button', {class: 'quiet', onclick: () => {
		el.textContent = '';
		el.append(h('span', text));
		button.remove();
	}}, t('output.all', {n: text.length}));
	return h('div', el, button);
}
