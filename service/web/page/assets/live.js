// This module knows the running turns and the open questions of all projects. It reads them after each event and
// guesses nothing.
import {get, Events} from './api.js';

// types lists the short events of the stream. The texts of turns come only to the stream of their session.
const types = ['question', 'answer', 'run.received', 'run.started', 'run.stopping', 'run.finished', 'session.freed'];

// columns is the largest number of columns in a row of a question. The page breaks rows itself.
const columns = 400;

// teamEvery is the interval, in milliseconds, at which a visible page asks a team's hub.
const teamEvery = 5000;

class Live {
	constructor() {
		this.clear();
		this.watchers = new Set();
	}

	clear() {
		this.questions = new Map(); // open questions by id, oldest first
		this.closed = new Map(); // the ends of questions that were open on this page
		this.runs = [];
		this.unreadable = [];
		this.team = {questions: [], runs: [], unreadable: []}; // the hub's last answer
		this.hub = false; // true if there is a team
		this.known = false; // true after the first reading
		this.state = 'connecting';
	}

	start() {
		this.clear();
		this.self = get('v1/self').then((self) => {
			if (!self.team || !this.events) return;
			this.hub = true;
			this.beat = setInterval(() => document.visibilityState === 'visible' && this.refreshTeam(), teamEvery);
			this.refreshTeam();
		}, () => {});
		this.events = new Events({type: types}, undefined, {
			open: () => this.refresh(),
			reset: () => this.refresh(),
			event: (line) => this.took(line),
			state: (word) => {
				this.state = word;
				if (word === 'broken' && !this.known) this.refresh(); // the reading shows the reason of the failure
				this.tell();
			},
		});
	}

	stop() {
		if (this.events) this.events.close();
		this.events = undefined;
		this.hub = false;
		clearTimeout(this.timer);
		clearInterval(this.beat);
	}

	// watch calls the function f after every change. It returns a function that ends this.
	watch(f) {
		this.watchers.add(f);
		return () => this.watchers.delete(f);
	}

	tell(line) {
		for (const f of [...this.watchers]) f(line);
	}

	took(line) {
		if (line.type === 'answer' && line.id) this.end(line.id, line);
		clearTimeout(this.timer);
		this.timer = setTimeout(() => this.refresh(), 30);
		this.tell(line);
	}

	// end removes a question from the open ones. how is {answer, reason}.
	end(id, how) {
		if (!this.questions.delete(id) && this.closed.has(id)) return;
		this.closed.set(id, how);
		this.tell();
	}

	// refresh reads the questions and runs. A call during a reading causes one more reading after it.
	async refresh() {
		if (this.reading) {
			this.again = true;
			return;
		}
		this.reading = true;
		try {
			const [asked, running] = await Promise.all([get('v1/questions', {width: columns}), get('v1/runs', {state: 'open'})]);
			const before = this.questions;
			// A worker on this machine has its questions and runs in its own log, which is newer than the copy.
			this.questions = new Map([...this.team.questions, ...asked.questions].filter((q) => !this.closed.has(q.id)).map((q) => [q.id, q]));
			for (const id of before.keys()) if (!this.questions.has(id) && !this.closed.has(id)) this.gone(id, before.get(id));
			const own = new Set(running.runs.map((r) => r.run_id));
			this.runs = [...running.runs, ...this.team.runs.filter((r) => !own.has(r.run_id))];
			this.unreadable = [...asked.unreadable, ...this.team.unreadable];
			this.known = true;
			this.failed = undefined;
		} catch (err) {
			this.failed = err;
		}
		this.reading = false;
		this.tell();
		if (this.again) {
			this.again = false;
			this.refresh();
		}
	}

	// refreshTeam asks the hub for the questions and runs of its workers. Nothing else waits for its answer.
	async refreshTeam() {
		if (this.asking) return;
		this.asking = true;
		const team = {project: 'team'};
		try {
			const [asked, running] = await Promise.all([get('v1/questions', {...team, width: columns}), get('v1/runs', {...team, state: 'open'})]);
			this.team = {questions: asked.questions, runs: running.runs, unreadable: asked.unreadable};
		} catch (err) {
			this.team = {...this.team, unreadable: [{project: 'team', context: 'default', error: err.message}]};
		}
		this.asking = false;
		if (this.events && this.hub) this.refresh();
	}

	// gone asks for the end of a question that is no longer open.
	async gone(id, q) {
		this.closed.set(id, {});
		try {
			const now = await get('v1/questions/' + encodeURIComponent(id), {project: q.project, context: q.context});
			this.closed.set(id, {answer: now.answer, ended: now.ended});
		} catch { /* that it is closed is known */ }
		this.tell();
	}
}

export const live = new Live();
