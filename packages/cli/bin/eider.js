#!/usr/bin/env node
// Kept in the repository, not built: npm links commands when it installs, which in a fresh clone is before the build.
import "../dist/main.js";
