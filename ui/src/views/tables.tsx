// The screens that are one table each, in one chunk.
export { About } from "./About";
export { Audit } from "./Audit";
export { Credentials } from "./Credentials";
export { Outbox } from "./Outbox";
export { People } from "./People";
export { Schedules } from "./Schedules";
export { Settings } from "./Settings";
export { Tokens } from "./Tokens";
export { Workers } from "./Workers";
