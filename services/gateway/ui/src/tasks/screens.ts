/** What is loaded together when either is opened. */
export { Schedules } from "../schedules/Schedules";
export { Tasks } from "./Tasks";
