//! Deposit messages are posted, and a node looks at its own depot.
use super::Deposit;
use super::node::Check;
use super::post::{Tried, failed};
use super::runner::Runner;
use ayre_proto::deposit::message::Posted;
use ayre_proto::deposit::{DepositMessage, Form, Mask};
use ayre_proto::fault::Fault;
use ayre_proto::units::PeerId;

impl Runner<'_> {
    /// Posts a deposit message, if there is room.
    pub(super) fn deposit(&mut self, node: u32, deposit: &Deposit) -> Tried {
        let Some((home, key)) = self.world.inlet_key(node, deposit) else {
            return Tried::Fault(Fault::ForeignHandle);
        };
        let Deposit { entry, len, fill, operand, registers, expect, is_declined, note, .. } =
            *deposit;
        let message = DepositMessage {
            form: Form::Pointer { entry, registers },
            operand,
            mask: Mask::ALL,
            len: len as u16,
            brings: len > 0,
            is_answered: expect.is_some() || is_declined,
        };
        let (classes, tag, value) = (note.classes, note.tag, note.value);
        let posted = Posted { key, epoch: 0, classes, tag, value, message };
        let data = vec![fill; len as usize];
        match self.world.cluster.deposit(node, PeerId(home as u16), &posted, &data) {
            Ok(ticket) => Tried::Under(home, ticket, Check::Deposit { is_declined, expect }),
            Err(error) => failed(error.into()),
        }
    }

    /// Sets a register of a node's own depot, or looks whether it has a value.
    pub(super) fn register(
        &mut self,
        node: u32,
        (depot, number): (usize, u8),
        value: u64,
        waits: bool,
    ) -> bool {
        let Some(depot) = self.world.depot_mut(node, depot) else { return true };
        if !waits {
            depot.set_register(number, value);
        }
        depot.register(number) == value
    }
}
