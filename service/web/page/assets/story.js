// This module shows a run as a timeline: the input, the answers to questions, the durations and the cost.
import {get, send} from './api.js';
import {h, icon, said, replace, save, loading, warn} from './dom.js';
import {t, clock, lasted, name} from './i18n.js';
import {failure, stateOf} from './now.js';
import {place, ending, sessionLink} from './question.js';
import {markdown} from './markdown.js';
import {figures, failed} from './turn.js';

// kinds has a function for each kind of step. It returns the class, the heading and the content of the step.
const kinds = {
	input: (s) => ['input', [said('b', s.sender || t('you')), ' · ', name('source', s.source)], s.damage ? said('b.bad', s.damage) : s.pruned ? t('run.pruned') : said('div.words', s.text || '')],
	said: (s) => ['', t('story.said'), markdown(s.text || '')],
	thought: (s) => ['', t('thought'), h('details', h('summary', t('show')), said('div.thought', s.text || ''))],
	tool: (s) => [s.tool.status === 'failed' ? 'bad' : '', [t('story.tool'), ' · ', name('tool', s.tool.status || 'pending')], said('div', s.tool.title)],
	asked: (s) => ['ask', t('story.asked'), question(s.question)],
	closed: (s) => [s.answer && /^allow/.test(kindOf(s)) ? 'good' : 'bad', [t('story.answered'), ' ', h('span.took', t('story.took', {time: lasted(s.took_ms || 0)}))], h('div.remark', ending(s.question, s))],
	outcome: (s) => [s.result.is_error ? 'bad' : 'good', t('story.outcome'), outcome(s)],
	note: (s) => [s.bad ? 'bad' : '', said('span', s.words || ''), s.text && said('div.words', s.text)],
};

const kindOf = (s) => ((s.question.options || []).find((o) => o.id === s.answer.option) || {}).kind || '';

function question(q) {
	const s = q.subject || {};
	return [said('div', q.title || t('question.tool')), (s.commands || []).map((c) => said('pre.output', c, {dir: 'ltr'})),
		(s.paths || []).length > 0 && h('ul.files', s.paths.map((p) => said('li.chip.mono', p, {dir: 'ltr'}))), q.why && said('p.small.dim', q.why)];
}

function outcome(s) {
	const r = s.result;
	return [!s.shown && r.text && markdown(r.text), failed(r),
		h('p.meta', h('span', {class: 'chip ' + (r.is_error ? 'bad' : 'good')}, name('outcome', r.outcome)), figures(r),
			s.first_ms > 0 && h('span', t('story.first', {time: lasted(s.first_ms)})))];
}

function step(s, x, first) {
	const [kind, head, ...body] = (kinds[s.kind] || kinds.note)(s);
	const since = new Date(s.at) - first;
	return h('li', {class: kind}, h('div.when', h('span', head, ' · ', h('time', {datetime: s.at, title: clock(s.at)}, since > 0 ? '+' + lasted(since) : clock(s.at))),
		h('button', {type: 'button', class: 'quiet small', 'aria-label': t('proof.of', {n: s.seq}), onclick: (e) => proof(s.seq, x, e.currentTarget)}, icon('shield'), t('proof'))), body);
}

async function proof(seq, x, button) {
	button.disabled = true;
	try {
		const res = await send('GET', 'v1/proofs/' + seq, {query: x, headers: {Accept: 'application/octet-stream'}});
		save(await res.blob(), 'event-' + seq + '.tlog-proof');
	} catch (err) {
		button.closest('li').append(failure(err));
	}
	button.disabled = false;
}

// run shows the view.
export function run(main, route, frame) {
	const where = {project: route.query.project, context: route.query.context};
	const list = h('ol.story');
	const head = h('section', loading());
	const more = h('p.row');
	replace(main, head, list, more);
	frame.name(t('story'));
	let first;

	async function steps(after) {
		const s = await get('v1/runs/' + encodeURIComponent(route.id) + '/story', {...where, after, limit: 300});
		if (first === undefined && s.steps.length) first = new Date(s.steps[0].at);
		list.append(...s.steps.map((x) => step(x, where, first)));
		replace(more, s.next && h('button', {onclick: () => steps(s.next)}, t('more')));
	}

	(async () => {
		try {
			const r = await get('v1/runs/' + encodeURIComponent(route.id), where);
			const p = r.result && r.result.permissions;
			replace(head, h('div.card', h('p.meta', stateOf(r), place(r), said('span', r.provider), h('time', {datetime: r.at}, clock(r.at))),
				h('dl.facts', [r.duration_ms > 0 && [t('fact.duration'), lasted(r.duration_ms)], [t('fact.dir'), said('span', r.dir || '', {dir: 'ltr'})], p && [t('numbers.questions'), t('fact.asked', p)], [t('fact.run'), h('span.mono', r.run_id)]].filter(Boolean).map(([k, v]) => [h('dt', k), h('dd', v)])),
				h('p.row', h('a.button', {href: sessionLink(r)}, icon('sessions'), t('session.open')),
					h('a.button', {href: '#/changes?' + new URLSearchParams({project: r.project, context: r.context, run: r.run_id})}, icon('edit'), t('record.changes')))));
			await steps();
		} catch (err) {
			replace(head, failure(err));
		}
	})();
}
