//! What the policy promises, from the outside. `cfg(test)` says to the lints what these modules are.

#[cfg(test)]
mod access;
#[cfg(test)]
mod ask;
#[cfg(test)]
mod changes;
#[cfg(test)]
mod default;
#[cfg(test)]
mod example;
#[cfg(test)]
mod explain;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod matchers;
#[cfg(test)]
mod order;
#[cfg(test)]
mod paths;
#[cfg(test)]
mod real_case;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod remarks;
#[cfg(test)]
mod runtime;
#[cfg(test)]
mod small;
#[cfg(test)]
mod suggest;
#[cfg(test)]
mod suggest_seen;
#[cfg(test)]
mod tools;
