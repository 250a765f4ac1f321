// This module uses Web Push: the browser's push service wakes this device when a question waits.
import {get, post, may} from './api.js';
import {h, replace, warn} from './dom.js';
import {t} from './i18n.js';

// uninstalled reports whether this is the browser of an iPhone or iPad without installation. There only the installed
// page can be woken. The installed page has its own storage and its own key.
export const uninstalled = () => navigator.standalone === false && navigator.maxTouchPoints > 1;

const worker = async () => 'serviceWorker' in navigator && navigator.serviceWorker.getRegistration();

// off ends the subscription here and on the server.
export async function off() {
	const w = await worker();
	const sub = w && w.pushManager && await w.pushManager.getSubscription();
	if (!sub) return;
	await post('v1/push/unsubscribe', {});
	await sub.unsubscribe();
}

async function on(key) {
	if (await Notification.requestPermission() !== 'granted') throw new Error(t('push.denied'));
	const {pushManager} = await worker();
	const old = await pushManager.getSubscription();
	if (old) await old.unsubscribe(); // it may belong to another key
	const {endpoint, keys: {p256dh, auth}} = (await pushManager.subscribe({userVisibleOnly: true, applicationServerKey: key})).toJSON();
	await post('v1/push/subscribe', {endpoint, keys: {p256dh, auth}});
}

// waking makes the card that turns notifications on and off.
export function waking() {
	const foot = h('div');
	const look = async (problem) => {
		const w = await worker();
		if (uninstalled() || !w || !w.pushManager) return replace(foot, warn(t(uninstalled() ? 'install' : 'push.none'), 'ask'));
		// The service worker has no texts, so the page stores this one for it.
		await (await caches.open('shell')).put('words', new Response(t('push.waits')));
		const {key, subscribed} = await get('v1/push');
		const is = subscribed && await w.pushManager.getSubscription();
		return replace(foot, problem && warn(problem.message), h('p.row', h('button', {id: 'push', 'aria-pressed': String(Boolean(is)), onclick: (e) => {
			e.currentTarget.disabled = true;
			(is ? off() : on(key)).then(() => look(), failed);
		}}, t(is ? 'push.off' : 'push.on'))));
	};
	const failed = (err) => look(err).catch((e) => replace(foot, warn(e.message)));
	look().catch(failed);
	return may('approve') && h('section.card', h('h2', t('push')), h('p.dim', t('push.why')), foot);
}
