// Tests of the calendar.
import { nextMeeting, weekOf } from "../src/calendar";

test("the next meeting is tomorrow", () => {
  const tomorrow = addDays(new Date(), 1);
  expect(nextMeeting([tomorrow])).toEqual(dayOf(addDays(new Date(), 1)));
});

test("a week begins on Monday", () => {
  expect(weekOf(new Date())[0].getDay()).toBe(1);
});
