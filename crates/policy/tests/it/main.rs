//! What the policy promises, from the outside.

mod ask;
mod default;
mod example;
mod faults;
mod fixture;
mod matchers;
mod order;
mod real_case;
mod reference;
mod runtime;
mod small;
mod tools;
