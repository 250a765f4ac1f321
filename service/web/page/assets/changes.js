// This module shows the files that agents changed, and the run of each line of a file.
import {get} from './api.js';
import {h, icon, said, replace, loading, warn, choice, empty, heading} from './dom.js';
import {t, clock, has, name, number} from './i18n.js';
import {failure, unreadable} from './now.js';
import {runLink} from './question.js';
import {line} from './diff.js';

const at = (x) => ({project: x.project, context: x.context});
const link = (view, x) => '#/' + view + '?' + new URLSearchParams(Object.entries(x).filter(([, v]) => v));

// since returns the beginning of the day that is this number of days ago. The count includes today.
export function since(days) {
	if (!days) return undefined;
	const d = new Date();
	d.setHours(0, 0, 0, 0);
	d.setDate(d.getDate() - days + 1);
	return d.toISOString();
}

// periodChoice lets a person choose a period. Its values are numbers of days.
export const periodChoice = (value, onchange) => choice(t('record.when'), 'days', [['', t('record.ever')], ['1', t('record.today')], ['7', t('record.week')], ['30', t('record.month')]], value, onchange);

// relative returns a path as it is below the project's directory. Another path stays absolute.
const relative = (path, project) => path.startsWith(project + '/') ? path.slice(project.length + 1) : path;

// tones has the class of each kind of decision and of each state of a change.
const tones = {person: 'good', unasked: 'bad', refused: 'bad', unknown: 'ask', present: 'good', inferred: 'ask', perhaps: 'ask'};
const chip = (kind, words) => h('span', {class: 'chip ' + (tones[kind] || '')}, words);

// allowedBy names the person or the part of the policy that allowed a change.
const allowedBy = (d) => chip(d.kind, has('decider.' + d.kind) ? t('decider.' + d.kind, {who: d.who || t('by.person')}) : d.kind);

const stateOf = (c) => c.perhaps ? 'perhaps' : c.inferred ? 'inferred' : c.now;

// most is the number of shown lines of a diff, and of shown characters of a line. The rest needs a press of a button.
const mostLines = 400;
const mostLetters = 2000;

// cut shows the beginning of a long text, with a button that shows all of it.
function cut(text, show) {
	if (text.length <= mostLetters) return show(text);
	const el = h('div', show(text.slice(0, mostLetters) + '…'), h('button.quiet', {onclick: () => replace(el, show(text))}, t('file.whole', {n: number(text.length)})));
	return el;
}

// diffOf shows the lines of a diff.
function diffOf(c) {
	const lines = (c.diff || '').replace(/\n$/, '').split('\n');
	if (!c.diff) return h('p.small.dim', t('changes.nodiff'));
	const body = h('div.lines', {tabindex: '0', role: 'group', 'aria-label': t('changes.diff')});
	const add = (from) => {
		body.append(...lines.slice(from, from + mostLines).map((l) => cut(l.slice(1), (text) => line(l[0], text))));
		if (lines.length > from + mostLines) {
			const more = h('button.quiet', {onclick: () => {
				more.remove();
				add(from + mostLines);
			}}, t('more'));
			body.append(more);
		}
	};
	add(0);
	return h('figure.diff', body, c.diff_cut && h('p.small.dim', t('changes.cut')));
}

// commands names the commands of an inferred change.
const commands = (c) => h('div.small', h('p', t(c.commands?.length ? 'changes.inferred.by' : 'changes.inferred.run')), (c.commands || []).map((x) => said('pre.output', x, {dir: 'ltr'})));

// change makes the entry of a change. Its diff is read when a person opens it.
function change(c, where) {
	const path = relative(c.path, where.project);
	const inside = path !== c.path && !c.removes;
	const show = h('div');
	const more = !c.inferred && h('details', {ontoggle: async (e) => {
		if (!e.target.open || show.firstChild) return;
		replace(show, loading());
		try {
			const {changes: list} = await get('v1/changes', {...at(where), run: c.run_id, path: c.path, diff: true, limit: 200});
			replace(show, diffOf(list.find((x) => x.tool_call_id === c.tool_call_id && x.at === c.at && !x.inferred) || {}));
		} catch (err) {
			replace(show, failure(err));
		}
	}}, h('summary', t('changes.diff')), show);
	const counts = c.removes ? t('changes.removes') : c.inferred ? '' : c.whole ? t('changes.whole', {n: c.added}) : '+' + c.added + ' −' + c.removed;
	const state = stateOf(c);
	return h('li.item', inside ? said('a.path', path, {href: link('file', {...at(where), path}), dir: 'ltr'}) : said('p.path', path, {dir: 'ltr'}),
		h('p.meta', counts && h('b', counts), state && chip(state, t('nowstate.' + state)), allowedBy(c.decision), h('time', {datetime: c.at}, clock(c.at)),
			c.sent_by && said('span', c.sent_by), h('a', {href: runLink({...where, run_id: c.run_id}), 'aria-label': t('line', {what: t('fact.run'), detail: c.input || c.run_id})}, t('fact.run'))),
		c.input && said('p.small.dim', c.input), c.decision.why && said('p.small.dim', c.decision.why), c.inferred && commands(c), more);
}

// changes shows the list of changes.
export function changes(main, route, frame) {
	const where = route.query;
	frame.name(t('changes'));
	const body = h('section', loading());
	const more = h('p.row');
	const period = periodChoice(where.days, () => go());
	const path = h('input', {type: 'search', name: 'path', value: where.path || '', autocomplete: 'off', spellcheck: 'false', enterkeyhint: 'search'});
	const go = () => { location.hash = link('changes', {...where, days: period.el.value, path: path.value.trim()}); };
	replace(main, h('form.card', {role: 'search', onsubmit: (e) => {
		e.preventDefault();
		go();
	}}, h('p.small.dim', said('span', where.project || '', {dir: 'ltr'}), where.session && [' · ', t('changes.session')]), h('div.filters', h('label', t('changes.path'), path), period.label),
	h('p.row', h('button.primary', icon('search'), t('changes.show')))), body, more);
	const list = h('ul.list');

	async function read(page) {
		const {days, ...of} = where;
		try {
			const res = await get('v1/changes', {...of, since: since(Number(days)), page});
			list.append(...res.changes.map((c) => change(c, res)));
			if (!page) replace(body, unreadable(res.unreadable), list.firstChild ? list : empty('edit', t('changes.none'), t('changes.none.why')));
			replace(more, res.next && h('button', {onclick: () => read(res.next)}, t('more')));
		} catch (err) {
			replace(page ? more : body, failure(err));
		}
	}
	read();
}

// size is the number of lines that one view of a file shows.
const size = 1000;

// lines shows lines of one origin.
const lines = (b, from, to) => h('ol.source', {start: b.first + from}, b.lines.slice(from, to).map((l, i) =>
	h('li', {id: 'L' + (b.first + from + i)}, cut(l.text, (text) => h('span.said', {dir: 'auto'}, text || ' ')))));

// blocks shows the lines of a file. Each block has the lines of one origin, and says who allowed them.
function blocks(b) {
	const out = [];
	for (let from = 0, to = 0; from < b.lines.length; from = to) {
		const n = b.lines[from].change;
		while (to < b.lines.length && b.lines[to].change === n) to++;
		const c = b.changes[n];
		const last = b.first + to - 1;
		const range = last === b.first + from ? t('file.line', {n: last}) : t('file.lines', {from: b.first + from, to: last});
		out.push(h('section.block', {class: c ? tones[c.decision.kind] || '' : 'unknown', 'aria-label': range}, h('p.meta', c ? [allowedBy(c.decision), h('time', {datetime: c.at}, clock(c.at)),
			h('a', {href: runLink({...b, run_id: c.run_id}), 'aria-label': t('line', {what: range, detail: c.input || c.run_id})}, said('span', c.input || c.run_id))] : h('span.chip.ask', t('file.unknown'))),
		lines(b, from, to)));
	}
	return out;
}

// inferredOf names the changes without lines: the inferred ones, and the ones that perhaps happened.
function inferredOf(list, where) {
	const of = list.filter((c) => c.inferred || c.perhaps);
	return of.length > 0 && h('details.card', h('summary', t('file.inferred', {n: of.length})), h('p.small', t('file.inferred.why')), h('ul', of.map((c) => change(c, where))));
}

// file shows the lines of a file with their origins.
export function file(main, route, frame) {
	const where = route.query;
	const wanted = Math.max(1, Number(where.line) || 1);
	frame.name(where.path || '');
	const body = h('section.file', loading());
	const other = h('div');
	const target = h('input', {type: 'number', name: 'line', min: '1', inputmode: 'numeric', value: where.line || ''});
	replace(main, h('form.card', {onsubmit: (e) => {
		e.preventDefault();
		if (target.value) location.hash = link('file', {...where, line: target.value});
	}}, said('p.path', where.path || '', {dir: 'ltr'}), h('div.filters', h('label', t('file.goto'), target), h('button', t('file.go'))),
	h('p.row', h('a.button.quiet', {href: link('changes', {...at(where), path: where.path})}, icon('edit'), t('file.changes')))), other, body);

	(async () => {
		try {
			const first = wanted - (wanted - 1) % size;
			const [b, all] = await Promise.all([get('v1/blame', {...at(where), path: where.path, line: first, limit: size}),
				get('v1/changes', {...at(where), path: where.path, limit: 200})]);
			const parts = [[first - size, 'file.before'], [first + size, 'file.after']].filter(([n]) => n > 0 && n <= b.total)
				.map(([n, words]) => h('a.button', {href: link('file', {...where, line: n})}, t(words)));
			replace(other, unreadable(b.unreadable), inferredOf(all.changes, all));
			replace(body, heading(t('file.part', {from: number(b.first), to: number(b.first + b.lines.length - 1), n: number(b.total)})),
				b.total === 0 ? warn(t('file.empty'), 'ask') : blocks(b), h('p.row', parts));
			const el = where.line && document.getElementById('L' + wanted);
			if (el) {
				el.classList.add('target');
				el.tabIndex = -1;
				el.focus({preventScroll: true});
				el.scrollIntoView({block: 'center'});
			}
		} catch (err) {
			replace(body, failure(err));
		}
	})();
}
