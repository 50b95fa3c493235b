//! What is typed is understood, and what others wrote is shown safely.

#[cfg(test)]
mod arguments;
#[cfg(test)]
mod check;
#[cfg(test)]
mod command_line;
#[cfg(test)]
mod layouts;
#[cfg(test)]
mod listings;
#[cfg(test)]
mod lookalikes;
#[cfg(test)]
mod operator_commands;
#[cfg(test)]
mod past;
#[cfg(test)]
mod printable;
#[cfg(test)]
mod rendering;
#[cfg(test)]
mod seen;
