#!/usr/bin/env node
// Starts the program in the package of this system, and ends with its exit code.
"use strict";
const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const name = `@perlica/${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/perlica${process.platform === "win32" ? ".exe" : ""}`);
} catch {
  console.error(`perlica: npm did not install the package ${name}\n` +
    "hint: install again without --omit=optional; docs/install.md lists the systems");
  process.exit(1);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// A terminal sends these signals to both processes. The program alone decides about its end.
for (const signal of ["SIGINT", "SIGQUIT", "SIGHUP"]) process.on(signal, () => {});
process.on("SIGTERM", () => child.kill("SIGTERM"));
child.on("error", (err) => {
  console.error(`perlica: ${err.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
