// This module shows a question on a card. A yes is possible only after each row about the effect was on the screen, as
// in every other front end.
import {answer, may, me} from './api.js';
import {live} from './live.js';
import {h, icon, said, replace, announce, dialog, warn} from './dom.js';
import {t, has, name, clock, ago} from './i18n.js';

// A yes counts only if its buttons stood still for this time and no other press came just before, in milliseconds.
const still = 500;
const quiet = 300;
const presses = ['pointerdown', 'keydown'];
const looks = ['scroll', 'resize', 'visibilitychange'];
// folded is the number of rows that are shown at once in a group of optional rows.
const folded = 24;

const base = (path) => path.split('/').filter(Boolean).pop() || path;

// place makes the name of the project of a question, a run or a session.
export const place = (x) => said('span', base(x.project) + (x.context && x.context !== 'default' ? ' · ' + x.context : ''), {title: x.project});

const link = (view, id, x) => '#/' + view + '/' + encodeURIComponent(id) + '?' + new URLSearchParams({project: x.project, context: x.context});
export const sessionLink = (x) => link('session', x.session_id, x);
export const runLink = (x) => link('run', x.run_id, x);

// kindOf returns Perlica's kind of an option. The option's label does not matter.
function kindOf(o) {
	if (o.kind === 'allow_once') return o.offer ? 'remember' : 'once';
	return {answer: 'answer', allow_always: 'always', reject_once: 'no', reject_always: 'never'}[o.kind] || 'unknown';
}

// labelOf returns the agent's label of an option in quotes. For Perlica's own option it returns Perlica's words.
const labelOf = (o) => !o.offer ? '“' + o.label + '”' : has('offer.' + o.id) ? t('offer.' + o.id) : o.label;

// Seen knows which rows have been on the screen, each from its beginning to its end.
class Seen {
	constructor(rows, changed) {
		this.all = rows.map((el) => ({el, to: 0}));
		this.rows = this.all;
		this.changed = changed;
	}

	get left() { return this.rows.length; }

	// look records the rows that are visible now, between the bars of the page.
	look() {
		if (document.hidden || document.querySelector('dialog[open]')) return;
		const before = this.rows.length;
		if (innerWidth !== this.width) { // a new width changes the layout, so all rows count as unseen
			this.width = innerWidth;
			this.rows = this.all;
			for (const r of this.all) r.to = 0;
		}
		const head = document.querySelector('.top');
		const top = head ? head.getBoundingClientRect().bottom : 0;
		const bars = [...document.querySelectorAll('.tabs, .composer')].map((el) => el.getBoundingClientRect().top);
		const bottom = Math.min(innerHeight, ...bars.filter((y) => y > 0));
		this.rows = this.rows.filter((r) => {
			const box = r.el.getBoundingClientRect();
			if (!box.height || box.bottom < top || box.top > bottom) return true;
			if (Math.max(top - box.top, 0) <= r.to + 1) r.to = Math.max(r.to, Math.min(bottom, box.bottom) - box.top);
			return r.to < box.height - 1;
		});
		if (this.rows.length !== before) this.changed();
	}
}

// Card is a question on the page, from its first display until it is closed.
export class Card {
	constructor(q) {
		this.q = q;
		this.alert = h('div', {role: 'alert'});
		this.rows = q.card.rows.map((row) => ({row, el: rowOf(row)}));
		const must = this.rows.filter((r) => r.row.must).map((r) => r.el);
		this.seen = new Seen(must, () => this.progress());
		this.foot = h('div.options');
		this.el = h('article', {class: 'card question ' + (q.subject.tier === 'refused' ? 'refused' : ''), 'aria-labelledby': 'q-' + q.id, tabindex: '-1'},
			this.header(), h('div.rows', this.groups()), this.foot);
		this.options();
		this.look = () => {
			if (document.hidden) this.at = 0;
			if (this.frame) return;
			this.frame = requestAnimationFrame(() => {
				this.frame = 0;
				this.measure();
			});
		};
		this.sizes = new ResizeObserver(this.look);
		this.sizes.observe(this.el);
		this.sizes.observe(document.body);
		for (const e of looks) addEventListener(e, this.look, {passive: true});
		this.touched = (e) => {
			this.counted = this.el.hasAttribute('data-still') && !e.repeat;
			this.rest(quiet);
		};
		for (const e of presses) addEventListener(e, this.touched, true);
	}

	// rest forbids a yes for a time.
	rest(ms) {
		const now = performance.now();
		this.end = Math.max(now + ms, this.end || 0);
		this.el.removeAttribute('data-still');
		clearTimeout(this.timer);
		this.timer = setTimeout(() => this.el.setAttribute('data-still', ''), this.end - now);
	}

	// drop ends the observation of the card. The card may stay on the page.
	drop() {
		this.sizes.disconnect();
		for (const e of looks) removeEventListener(e, this.look);
		for (const e of presses) removeEventListener(e, this.touched, true);
		cancelAnimationFrame(this.frame);
	}

	// measure records the visible rows. It also notices if the buttons have moved by themselves.
	measure() {
		if (!this.el.isConnected || this.ended) return;
		const at = Math.round(this.foot.getBoundingClientRect().top + scrollY);
		if (at !== this.at) this.rest(still);
		this.at = at;
		this.seen.look();
	}

	header() {
		const q = this.q;
		const title = q.card.rows[0];
		return h('header', {},
			h('p.meta', h('span.chip.ask', t('question')), place(q), h('time', {datetime: q.asked, title: clock(q.asked)}, ago(q.asked)),
				expires(q), q.session_id && h('a', {href: sessionLink(q)}, t('session'))), // a team's hub may have a question before the copy has its session
			h('h3', {id: 'q-' + q.id}, h('span.dim', t('question.asks', {who: q.subject.provider}), ' '), said('span', q.title ? title.text : t('question.tool'))));
	}

	// groups returns the rows of the card, grouped by their labels.
	groups() {
		const out = [];
		let group;
		let hidden;
		let n = 0;
		for (const {row, el} of this.rows.slice(1)) {
			const label = row.head.slice(0, 10).trim();
			if (label === 'tier') el.textContent = tier(row.text);
			if (label === 'allow') el.textContent = t('word.type', {word: this.q.word});
			if (label || !group) {
				group = h('div', {class: 'group g-' + label}, h('span.label', has('row.' + label) ? t('row.' + label) : label));
				out.push(group);
				n = 0;
				hidden = undefined;
			}
			if (!row.must && ++n > folded) {
				hidden = hidden || this.more(group);
				hidden.push(el);
				continue;
			}
			group.append(el);
		}
		return out;
	}

	// more makes a button that shows further rows. The caller adds these rows to the returned list.
	more(group) {
		const rows = [];
		const button = h('button', {class: 'quiet', onclick: () => button.replaceWith(...rows)}, t('question.more'));
		group.append(button);
		return rows;
	}

	options() {
		const q = this.q;
		if (!may('approve')) {
			replace(this.foot, h('p.dim.small', t('question.notyours')));
			return;
		}
		this.unread = h('p.unread-yet', {'aria-live': 'off'}, h('span'), h('button', {class: 'quiet', onclick: () => this.next()}, icon('down'), t('question.next')));
		this.yes = [];
		let no = false;
		this.buttons = q.options.map((o, i) => {
			const kind = kindOf(o);
			const cls = !o.allows ? 'no' + (no ? '' : ' no-first') : o.always ? 'always' : kind === 'remember' ? 'yes remember' : 'yes';
			no = no || !o.allows;
			const b = h('button', {class: cls, 'data-option': o.id, onclick: (e) => this.press(o, e)},
				h('span', (o.allows ? (o.always ? '! ' : '✓ ') : '✗ ') + t('option.' + kind)), said('span.agent-label', labelOf(o)));
			if (o.allows) this.yes.push(b);
			b.dataset.n = String(i + 1);
			return b;
		});
		replace(this.foot, this.unread, this.alert, this.buttons);
		this.progress();
	}

	// progress shows the number of unseen rows. If all rows were seen, it permits a yes.
	progress() {
		if (!this.yes || this.ended) return;
		const ready = this.seen.left === 0;
		for (const b of this.yes) {
			if (ready && !this.sending) b.removeAttribute('aria-disabled');
			else b.setAttribute('aria-disabled', 'true');
		}
		this.unread.hidden = ready;
		this.unread.firstChild.textContent = t('question.unseen', {n: this.seen.left});
	}

	// next scrolls to the first unseen row.
	next() {
		const r = this.seen.rows[0];
		if (!r) return;
		const head = document.querySelector('.top').getBoundingClientRect().bottom;
		scrollTo({top: scrollY + r.el.getBoundingClientRect().top + Math.max(r.to - 24, 0) - head - 8, behavior: 'instant'});
		announce(t('question.unseen', {n: this.seen.left}));
	}

	async press(o, e) {
		this.measure();
		if (this.sending || this.ended) return;
		if (o.allows && !((e.isTrusted ? this.counted : undefined) ?? this.el.hasAttribute('data-still'))) {
			if (!this.early) this.el.append(this.early = h('p.dim', {role: 'status'}, t('question.early')));
			return;
		}
		if (o.allows && this.seen.left > 0) {
			this.next();
			return;
		}
		const more = {shown: {rows: this.q.card.rows.length - this.seen.left, of: this.q.card.rows.length}};
		if (o.allows && o.always) {
			if (await this.confirm() !== 'yes') return;
			more.always = true;
		}
		if (o.text || o.allows && this.q.word) {
			more.word = await this.word(o.text);
			if (more.word === undefined) return;
		}
		await this.give(o, more);
	}

	confirm() {
		const yes = h('button', {value: 'yes', class: 'always', disabled: true}, t('always.yes'));
		setTimeout(() => { yes.disabled = false; }, still);
		return dialog(h('h2', t('always.title')), h('p', t('always.why')), h('div.options', h('button', {value: 'back'}, t('back')), yes));
	}

	// word asks for a text, or for the word that a yes needs. It returns undefined if the person gave none.
	async word(free) {
		const {word} = this.q;
		const input = h('input', {autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', name: 'word', oninput: () => { yes.disabled = !free && input.value !== word; }});
		const yes = h('button', {value: 'yes', class: free ? 'yes' : 'always', disabled: !free}, t(free ? 'compose.send' : 'word.yes'));
		const back = h('button', {onclick: (e) => e.target.closest('dialog').close('back')}, t('back'));
		const said = await dialog(free ? h('h2', t('word.text')) : [h('h2', t('word.title')), h('p', t('word.why')), h('p.word', word)],
			h('label', free ? '' : t('word.type', {word}), input), h('div.options', back, yes));
		return said === 'yes' ? input.value : undefined;
	}

	// give sends an answer. The card closes only after Perlica has confirmed that the answer is on record.
	async give(o, more) {
		this.sending = true;
		replace(this.alert, h('p.alert.ask', t('question.sending')));
		for (const b of this.buttons) b.disabled = true;
		try {
			await answer(this.q, o.id, more);
			live.end(this.q.id, {answer: {option: o.id, by: t('you'), mine: true}});
			this.close(live.closed.get(this.q.id));
		} catch (err) {
			this.failed(err);
		}
		this.sending = false;
	}

	failed(err) {
		if (err.status === 409 && (err.body.answer || err.body.reason)) {
			live.end(this.q.id, {answer: err.body.answer, reason: err.body.reason});
			this.close(live.closed.get(this.q.id));
			return;
		}
		const text = err.lost ? t('question.lost') : t('question.failed') + ' ' + err.message;
		replace(this.alert, warn(text));
		if (this.ended) return;
		for (const b of this.buttons) b.disabled = false;
	}

	// close shows the end of the question and the sender of the answer.
	close(how) {
		if (this.ended) {
			if (how.answer || how.reason || how.ended) replace(this.ending, ending(this.q, how));
			return;
		}
		this.ended = true;
		this.early?.remove();
		this.drop();
		this.el.classList.add('closed');
		this.ending = h('div.closing', {role: 'status'}, ending(this.q, how));
		this.foot.replaceWith(this.ending);
		this.el.querySelector('.expires')?.remove();
		this.el.querySelector('.chip').className = 'chip';
		this.el.querySelector('.chip').textContent = t('question.closed');
	}
}

// ending describes the end of a question.
export function ending(q, how) {
	const a = how.answer;
	if (!a) return [icon('cross'), h('div', how.reason ? t('ended.reason', {reason: has('reason.' + how.reason) ? t('reason.' + how.reason) : how.reason.replaceAll('_', ' ')}) : how.ended || t('ended'))];
	const o = (q.options || []).find((x) => x.id === a.option);
	const what = o ? t('option.' + kindOf(o)) : a.option;
	const allows = o && (o.allows || /^allow/.test(o.kind));
	const words = a.mine || me() && a.by.endsWith('(web:' + me().id + ')') ? t('ended.mine', {what}) : t(a.where ? 'ended.where' : 'ended.by', {by: a.by, where: name('source', a.where), what});
	return [icon(allows ? 'check' : 'cross'), h('div', words, o && [' ', said('span.dim', labelOf(o))])];
}

// expires says when a question expires, unless this is more than a year away.
function expires(q) {
	const at = new Date(q.expires);
	return at.getFullYear() > 2000 && at - Date.now() < 3e10 && h('span.expires', t('question.expires', {when: ago(at)}));
}

// tier describes the policy's judgement of a question in the page's language.
const tier = (text) => text.split(', ').map((part) => part.startsWith('kind ') ? t('tier.kind', {kind: name('act', part.slice(5))}) : name('tier', part)).join(t('tier.joint'));

// rowOf makes a row of the card. An agent's row has a bar before it.
function rowOf(row) {
	const cls = (row.agent ? 'agent' : 'own') + ' ' + row.tone;
	return row.agent ? said('div', row.text || ' ', {class: cls, dir: 'ltr'}) : h('div', {class: cls}, row.text);
}
