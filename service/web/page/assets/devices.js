// This module shows this device: its name, its rights, its preferences and the sign-out. An administrator also sees the
// other devices and can revoke them.
import * as device from './device.js';
import {get, post, me, may} from './api.js';
import {h, icon, said, replace, dialog, choice, loading, announce} from './dom.js';
import {t, ago, choose, group, language, languages} from './i18n.js';
import {failure} from './now.js';
import {thoughts} from './turn.js';
import {live} from './live.js';
import {off, waking} from './push.js';
import {start} from './app.js';

const revoke = (id) => post('v1/devices/' + encodeURIComponent(id) + '/revoke', {});

async function sure(what, why) {
	return await dialog(h('h2', what), h('p', why),
		h('div.options', h('button', {value: 'back'}, t('back')), h('button', {value: 'yes', class: 'no'}, what))) === 'yes';
}

// others lists the other devices, for a person that may revoke them.
function others() {
	const list = h('ul.list', {id: 'others'});
	const foot = h('div', loading());
	const out = async (d) => {
		if (!await sure(t('revoke'), t('revoke.why', {name: d.name}))) return;
		try {
			await revoke(d.id);
			announce(t('revoke.done', {name: d.name}));
			await look();
		} catch (err) {
			replace(foot, failure(err));
		}
	};
	const item = (d) => h('li.item', h('div.row.apart', h('div', said('div.title', d.name),
		h('div.meta', h('span.chip', t('device.' + d.kind)), d.rights.map((r) => h('span', t('right.' + r))),
			d.browser && said('span', d.browser), d.address && h('span', d.address), h('time', {datetime: d.paired, title: d.paired}, ago(d.paired)))),
	h('button', {class: 'danger', 'aria-label': t('line', {what: t('revoke'), detail: d.name}), onclick: () => out(d)}, t('revoke'))));
	const look = async () => {
		const all = (await get('v1/devices')).devices.filter((d) => d.id !== me().id);
		replace(list, all.map(item));
		list.hidden = all.length === 0;
		replace(foot, all.length === 0 && h('p.dim', t('device.alone')));
	};
	look().catch((err) => replace(foot, failure(err)));
	return [list, foot];
}

async function signOut() {
	if (!await sure(t('signout'), t('signout.why'))) return;
	await off().catch(() => {}); // the server also removes the subscription with the device
	try {
		await revoke(me().id);
	} catch (err) {
		if (!await sure(t('signout'), t('signout.offline') + ' perlica web revoke ' + me().name)) return;
	}
	live.stop();
	await device.forget();
	sessionStorage.clear();
	location.hash = '';
	location.reload();
}

function card(self) {
	return h('section.card', {id: 'self'}, h('p.meta', h('span.chip.good', t('device.this'))),
		h('h2', said('span', self.name)),
		h('dl.facts', h('dt', t('device.id')), h('dd.mono', self.id), h('dt', t('device.server')), h('dd', location.host)),
		h('ul.rights', group('right').map((r) => {
			const has = self.rights.includes(r);
			return h('li', {class: 'remark ' + (has ? 'good' : '')}, icon(has ? 'check' : 'cross'), h('span', h('b', t('right.' + r)), ' ', h('span.unseen', has ? t('yes') : t('no')), t('right.' + r + '.why')));
		})), h('p.row', h('button', {class: 'danger', onclick: signOut}, t('signout'))));
}

// devices shows the view.
export function devices(main) {
	const self = h('div', card(me()));
	const lang = choice(t('language'), 'language', Object.entries(languages), language, () => choose(lang.el.value).then(() => {
		live.stop();
		live.start();
		start();
	}));
	const think = choice(t('thoughts'), 'thoughts', [['hidden', t('thoughts.hidden')], ['shown', t('thoughts.shown')]], thoughts.shown ? 'shown' : 'hidden',
		() => { thoughts.shown = think.el.value === 'shown'; });
	replace(main, self, waking(), h('section.card', h('h2', t('preferences')), h('div.filters', lang.label, think.label)),
		h('section.card', h('h2', t('device.others')), may('admin') ? others() : h('p.dim', t('device.others.why')),
			h('p.dim', t('device.pair')), h('pre.command', 'perlica web pair')));
	const shown = String([me().name, me().rights]);
	get('v1/self').then((s) => String([s.name, s.rights]) !== shown && replace(self, card(s))).catch(() => {}); // replaces it after a change only, because a click may be under way
}
