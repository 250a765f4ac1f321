// What runs and what asks, over all projects: read when something happens, never guessed.
import {get, Events} from './api.js';

// What the stream says in few words; the texts of turns come to the session's own stream.
const types = ['question', 'answer', 'run.received', 'run.started', 'run.stopping', 'run.finished', 'session.freed'];

// How many columns a row of a question may have: the page breaks rows itself.
const columns = 400;

// How often a team's hub is asked, in milliseconds, while the page is shown.
const teamEvery = 5000;

class Live {
	constructor() {
		this.clear();
		this.watchers = new Set();
	}

	clear() {
		this.questions = new Map(); // open ones by id, oldest first
		this.closed = new Map(); // how questions ended that were open here
		this.runs = [];
		this.unreadable = [];
		this.team = {questions: [], runs: [], unreadable: []}; // what the hub had when it was last asked
		this.hub = false; // whether there is a team
		this.known = false; // whether all of this was read once
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
				if (word === 'broken' && !this.known) this.refresh(); // it says why nothing is shown
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

	// watch calls f after every change, until the function that it returns is called.
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

	// end takes a question off the open ones; how is {answer, reason}.
	end(id, how) {
		if (!this.questions.delete(id) && this.closed.has(id)) return;
		this.closed.set(id, how);
		this.tell();
	}

	// refresh reads again. One that comes while another is under way follows it.
	async refresh() {
		if (this.reading) {
			this.again = true;
			return;
		}
		this.reading = true;
		try {
			const [asked, running] = await Promise.all([get('v1/questions', {width: columns}), get('v1/runs', {state: 'open'})]);
			const before = this.questions;
			// What a worker on this machine asks and runs is in its own log: that is nearer than the copy.
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

	// refreshTeam asks the hub, which may take its time, what its workers ask and run. Nothing else waits for it.
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

	// gone asks how a question ended that is not open any more.
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
