//! A cheap first look at a frame: its limits, and the id that an error can be sent under.
