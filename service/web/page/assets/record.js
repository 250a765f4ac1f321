// This module searches the record for words and verifies logs.
import {get} from './api.js';
import {h, icon, said, replace, announce, loading, warn, choice, empty, heading} from './dom.js';
import {t, clock, name, number} from './i18n.js';
import {live} from './live.js';
import {failure, runItem, unreadable} from './now.js';
import {place, runLink} from './question.js';

const kinds = ['input', 'answer', 'tool', 'question', 'decision'];

const log = (c) => ({project: c.project, context: c.context});

const team = {project: 'team'};

// hit makes the entry of a found text.
function hit(x) {
	const words = x.excerpt.map((p) => p.match ? h('mark', p.text) : h('span', p.text));
	const inside = [h('span.said', {dir: 'auto'}, words), h('span.meta', h('span.chip', name('kind', x.kind)), place(x), said('span', x.provider), h('time', {datetime: x.ts}, clock(x.ts)))];
	return h('li', x.run_id ? h('a.item', {href: runLink(x)}, inside) : h('div.item', inside));
}

// since returns the beginning of the day that is this number of days ago. The count includes today.
function since(days) {
	if (!days) return undefined;
	const d = new Date();
	d.setHours(0, 0, 0, 0);
	d.setDate(d.getDate() - days + 1);
	return d.toISOString();
}

// record shows the view.
export function record(main, route) {
	const was = route.query;
	const words = h('input', {type: 'search', name: 'q', value: was.q || '', autocomplete: 'off', enterkeyhint: 'search'});
	const kind = choice(t('record.kind'), 'kind', [['', t('record.all')], ...kinds.map((k) => [k, t('kind.' + k)])], was.kind);
	const period = choice(t('record.when'), 'days', [['', t('record.ever')], ['1', t('record.today')], ['7', t('record.week')], ['30', t('record.month')]], was.days);
	const project = choice(t('project'), 'project', [['', t('record.all')]]);
	const out = h('section', {'aria-live': 'polite'});
	const logs = h('section');
	const contexts = [];

	const form = h('form.card', {role: 'search', onsubmit: (e) => {
		e.preventDefault();
		find();
	}}, h('div.filters', h('label.whole', t('record.search'), words), h('div.whole', project.label), kind.label, period.label),
	h('p.row', {id: 'find'}, h('button.primary', icon('search'), t('record.find'))));
	replace(main, form, out, logs);
	for (const c of [kind, period, project]) c.el.addEventListener('change', () => find());

	const where = () => project.el.value ? log(contexts[Number(project.el.value)]) : {};

	let newest = 0; // only the answer to the newest request is shown

	async function find() {
		const mine = ++newest;
		const query = {q: words.value.trim(), kind: kind.el.value, days: period.el.value};
		history.replaceState(null, '', '#/record?' + new URLSearchParams(Object.entries(query).filter(([, v]) => v)));
		replace(out, loading());
		const found = await (query.q ? search(query) : runs()).catch((err) => [failure(err)]);
		if (mine === newest) replace(out, found);
	}

	async function search(query) {
		const {hits, unreadable: bad} = await get('v1/search', {q: query.q, kind: query.kind, since: since(Number(query.days)), ...where(), limit: 100});
		const title = t('hits.n', {n: hits.length});
		announce(title);
		return [unreadable(bad), heading(title),
			hits.length ? h('ul.list', hits.map(hit)) : empty('search', t('hits.none'), t('hits.none.why'))];
	}

	async function runs(page, list) {
		const from = since(Number(period.el.value));
		const res = await get('v1/runs', {...where(), limit: 30, page});
		const found = res.runs.filter((r) => !from || new Date(r.at) >= new Date(from));
		const items = found.map((r) => runItem(r, runLink(r)));
		const more = res.next && found.length === res.runs.length && h('button', {onclick: (e) => {
			e.target.remove();
			runs(res.next, list || out.querySelector('.list'));
		}}, t('more'));
		if (list) {
			list.append(...items);
			if (more) out.append(more);
			return [];
		}
		return [unreadable(res.unreadable), heading(t('numbers.runs')),
			items.length ? h('ul.list', items) : empty('record', t('record.none'), t('record.none.why')), more];
	}

	const list = h('ul.list', {id: 'logs'});

	// known adds logs to the choice. all is an entry for all of them together, or empty.
	async function known(of, all) {
		try {
			const found = [...all, ...(await get('v1/contexts', of)).contexts];
			project.el.append(...found.map((c, i) => h('option', {value: String(contexts.length + i)}, c.name || c.project.split('/').pop() + (c.context === 'default' ? '' : ' · ' + c.context))));
			contexts.push(...found);
			list.append(...found.filter((c) => c.context).map(logItem));
			if (list.children.length) replace(logs, heading(t('logs')), list);
		} catch (err) {
			logs.append(failure(err));
		}
	}
	Promise.all([known({}, []), live.self]).then(() => live.hub && known(team, [{...team, name: t('team.name')}]));
	find();
}

// logItem makes the entry of a log, with a button that verifies the log.
function logItem(c) {
	const result = h('div', {role: 'status'});
	const button = h('button', {onclick: () => verify(c, button, result)}, icon('shield'), t('verify'));
	const to = (view, sign, words) => h('a.button', {href: '#/' + view + '?' + new URLSearchParams(log(c))}, icon(sign), words);
	const bad = c.gone ? t('log.gone') : c.error && t('log.unreadable') + ' ' + c.error;
	return h('li.item', h('div.row.apart', h('div', h('div', place(c)),
		h('div.meta', said('span', c.project, {dir: 'ltr'}), !bad && h('span', t('events.n', {n: number(c.events)})))), !c.gone && c.project !== team.project && h('p.row', to('changes', 'edit', t('record.changes')), to('rules', 'shield', t('record.rules')), to('report', 'record', t('report')), button)),
	bad && warn(said('span', bad)), result);
}

async function verify(c, button, result) {
	button.disabled = true;
	replace(result, h('p.small.dim', t('verify.busy')));
	try {
		replace(result, verdict(await get('v1/verify', log(c))));
	} catch (err) {
		replace(result, failure(err));
	}
	button.disabled = false;
}

// verdict shows the result of a verification.
function verdict(v) {
	const facts = h('dl.facts', [
		[t('verify.events'), number(v.events)], [t('verify.signed'), number(v.signed_events)], [t('verify.checkpoints'), number(v.checkpoints)], [t('verify.anchors'), number(v.anchors)],
		v.pruned_payloads && [t('verify.pruned'), number(v.pruned_payloads)], v.root && [t('verify.root'), h('span.mono', v.root)],
	].filter(Boolean).map(([k, x]) => [h('dt', k), h('dd', x)]));
	const head = v.ok ? h('p.alert.good', icon('check'), h('div', t('verify.ok'))) :
		warn([t('verify.bad'), ' ', said('span', v.damage || '')]);
	return h('div.verdict', head, (v.findings || []).map((f) => said('p.small', f.what)), (v.warnings || []).map((w) => said('p.small.dim', w)), facts);
}
