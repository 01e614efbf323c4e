//! The hints of a program, and the matching offers.
//!
//! A hint of zero is no wish. Any other must be met, or the program is told that there is nothing
//! for it; the log says which hint it was.

use crate::abi::*;
use crate::info::address::Address;
use crate::info::offer::{Answer, Kind, MR_MODES, Offer, PROTOCOL, PROVIDER_VERSION};
use ayre_guest::layout::version;
use std::ffi::{CStr, c_int};
use std::fmt::{self, Display};

/// A program's wishes. Pointers inside of the attributes are not looked at here.
#[derive(Debug)]
pub(crate) struct Hints<'a> {
    pub(crate) caps: u64,
    pub(crate) addr_format: u32,
    /// Empty for none.
    pub(crate) source: &'a [u8],
    pub(crate) destination: &'a [u8],
    pub(crate) tx: Option<TxAttr>,
    pub(crate) rx: Option<RxAttr>,
    pub(crate) ep: Option<EpAttr>,
    pub(crate) domain: Option<DomainAttr>,
    pub(crate) domain_name: Option<&'a CStr>,
    pub(crate) fabric: Option<FabricAttr>,
    pub(crate) fabric_name: Option<&'a CStr>,
}

/// The wish that cannot be met.
#[derive(Debug, PartialEq)]
pub(crate) struct Unmet {
    what: &'static str,
    asked: String,
    have: String,
}

impl Display for Unmet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: asked for {}, have {}", self.what, self.asked, self.have)
    }
}

type Met<T = ()> = Result<T, Unmet>;

fn unmet<T>(what: &'static str, asked: impl Display, have: impl Display) -> Met<T> {
    Err(Unmet { what, asked: asked.to_string(), have: have.to_string() })
}

/// A wish for at least so much.
fn at_most(what: &'static str, asked: usize, have: usize) -> Met {
    if asked > have { unmet(what, asked, have) } else { Ok(()) }
}

/// A wish for bits.
fn within(what: &'static str, asked: u64, have: u64) -> Met {
    if asked & !have != 0 {
        return unmet(what, format_args!("{asked:#x}"), format_args!("{have:#x}"));
    }
    Ok(())
}

/// A wish for one of several, or none.
fn one_of(what: &'static str, asked: u32, have: &[u32], otherwise: u32) -> Met<u32> {
    match asked {
        0 => Ok(otherwise),
        _ if have.contains(&asked) => Ok(asked),
        _ => unmet(what, asked, format_args!("{have:?}")),
    }
}

fn named(what: &'static str, asked: Option<&CStr>, have: &CStr) -> Met {
    match asked {
        Some(asked) if asked != have => {
            unmet(what, asked.to_string_lossy(), have.to_string_lossy())
        }
        _ => Ok(()),
    }
}

impl Hints<'_> {
    /// The answer of `kind` to these hints, for a program of version `api`.
    pub(crate) fn answer(&self, offer: &Offer, kind: &Kind, api: u32) -> Met<Answer> {
        let mut answer = offer.answer(kind, api);
        named("fabric name", self.fabric_name, kind.fabric)?;
        named("domain name", self.domain_name, kind.domain)?;
        one_of("address format", self.addr_format, &[Address::FORMAT], 0)?;
        let prov_version = self.fabric.map_or(0, |fabric| fabric.prov_version);
        at_most("provider version", prov_version as usize, PROVIDER_VERSION as usize)?;
        answer.caps = self.granted(offer)?;
        if let Some(hint) = &self.domain {
            answer.domain_fid = hint.domain as usize;
            domain(hint, offer, api, &mut answer.domain)?;
        }
        if let Some(hint) = &self.ep {
            ep(hint, offer, &answer.ep)?;
        }
        answer.tx.caps = answer.caps & offer.tx_caps;
        if let Some(hint) = &self.tx {
            tx(hint, &mut answer.tx, offer)?;
        }
        answer.rx.caps = answer.caps & offer.rx_caps;
        if let Some(hint) = &self.rx {
            rx(hint, &mut answer.rx, offer)?;
        }
        Ok(answer)
    }

    /// The capabilities that a program gets: what it asks for, all ways of that unless it names
    /// some, and what costs nothing.
    fn granted(&self, offer: &Offer) -> Met<u64> {
        within("capabilities", self.caps, offer.caps)?;
        if self.caps == 0 {
            return Ok(offer.caps);
        }
        let mut granted = self.caps | offer.added;
        let (messages, memory) = (SEND | RECV, READ | WRITE | REMOTE_READ | REMOTE_WRITE);
        for (all, ways) in [(MSG | TAGGED, messages), (RMA | ATOMIC, memory)] {
            if self.caps & all != 0 && self.caps & ways == 0 {
                granted |= ways;
            }
        }
        Ok(granted)
    }
}

fn domain(hint: &DomainAttr, offer: &Offer, api: u32, answer: &mut DomainAttr) -> Met {
    let levels = [THREAD_SAFE, THREAD_FID, THREAD_DOMAIN, THREAD_COMPLETION, THREAD_ENDPOINT];
    answer.threading = one_of("threading", hint.threading, &levels, answer.threading)?;
    let control = [PROGRESS_AUTO, PROGRESS_MANUAL, PROGRESS_CONTROL_UNIFIED];
    let otherwise = answer.control_progress;
    answer.control_progress =
        one_of("control progress", hint.control_progress, &control, otherwise)?;
    let data = if offer.has_auto_progress { &control[..2] } else { &control[1..2] };
    answer.data_progress = one_of("data progress", hint.data_progress, data, answer.data_progress)?;
    let management = [RM_DISABLED, RM_ENABLED];
    answer.resource_mgmt =
        one_of("resource management", hint.resource_mgmt, &management, RM_ENABLED)?;
    answer.av_type = one_of("AV type", hint.av_type, &[AV_MAP, AV_TABLE], answer.av_type)?;
    answer.mr_mode = mr_mode(hint.mr_mode, api);
    within("domain capabilities", hint.caps, offer.domain_caps)?;
    for (what, asked, have) in [
        ("MR key size", hint.mr_key_size, answer.mr_key_size),
        ("CQ data size", hint.cq_data_size, answer.cq_data_size),
        ("CQs", hint.cq_cnt, answer.cq_cnt),
        ("endpoints", hint.ep_cnt, answer.ep_cnt),
        ("transmit contexts", hint.tx_ctx_cnt, answer.tx_ctx_cnt),
        ("receive contexts", hint.rx_ctx_cnt, answer.rx_ctx_cnt),
        ("transmit contexts of an endpoint", hint.max_ep_tx_ctx, answer.max_ep_tx_ctx),
        ("receive contexts of an endpoint", hint.max_ep_rx_ctx, answer.max_ep_rx_ctx),
        ("shared transmit contexts", hint.max_ep_stx_ctx, 0),
        ("shared receive contexts", hint.max_ep_srx_ctx, 0),
        ("counters", hint.cntr_cnt, answer.cntr_cnt),
        ("pieces of a registration", hint.mr_iov_limit, answer.mr_iov_limit),
        ("error data", hint.max_err_data, answer.max_err_data),
        ("registrations", hint.mr_cnt, answer.mr_cnt),
        ("authorisation key", hint.auth_key_size, 0),
    ] {
        at_most(what, asked, have)?;
    }
    Ok(())
}

/// The addressing and the keys that a program gets: those that it asks for, none that it has to
/// bear. Before version 1.5 there were two sets to choose from, by numbers.
fn mr_mode(hint: c_int, api: u32) -> c_int {
    match hint {
        MR_BASIC | MR_SCALABLE => hint,
        MR_UNSPEC if api < version(1, 5) => MR_SCALABLE,
        _ => hint & MR_MODES,
    }
}

fn ep(hint: &EpAttr, offer: &Offer, answer: &EpAttr) -> Met {
    one_of("endpoint type", hint.r#type, &[EP_RDM], EP_RDM)?;
    one_of("protocol", hint.protocol, &[PROTOCOL], PROTOCOL)?;
    for (what, asked, have) in [
        ("protocol version", hint.protocol_version as usize, answer.protocol_version as usize),
        ("message size", hint.max_msg_size, offer.max_msg_size),
        ("size of ordered reads after writes", hint.max_order_raw_size, offer.max_msg_size),
        ("size of ordered writes after reads", hint.max_order_war_size, offer.max_war_size),
        ("size of ordered writes after writes", hint.max_order_waw_size, offer.max_msg_size),
        ("transmit contexts", hint.tx_ctx_cnt, answer.tx_ctx_cnt),
        ("receive contexts", hint.rx_ctx_cnt, answer.rx_ctx_cnt),
        ("authorisation key", hint.auth_key_size, 0),
    ] {
        at_most(what, asked, have)?;
    }
    Ok(())
}

fn tx(hint: &TxAttr, answer: &mut TxAttr, offer: &Offer) -> Met {
    let asked = hint.caps & !offer.of_receivers();
    within("transmit capabilities", asked, answer.caps | offer.domain_caps)?;
    within("transmit flags", hint.op_flags, offer.op_flags)?;
    within("transmit order", hint.msg_order, offer.msg_order)?;
    within("order of transmit completions", hint.comp_order, 0)?;
    at_most("injected bytes", hint.inject_size, answer.inject_size)?;
    at_most("transmit size", hint.size, answer.size)?;
    at_most("pieces of a transmission", hint.iov_limit, answer.iov_limit)?;
    at_most("remote pieces", hint.rma_iov_limit, answer.rma_iov_limit)?;
    if hint.caps != 0 {
        answer.caps = hint.caps & offer.tx_caps;
    }
    answer.op_flags = hint.op_flags;
    Ok(())
}

fn rx(hint: &RxAttr, answer: &mut RxAttr, offer: &Offer) -> Met {
    let asked = hint.caps & !offer.of_senders();
    within("receive capabilities", asked, answer.caps | offer.domain_caps)?;
    within("receive flags", hint.op_flags, offer.op_flags)?;
    within("receive order", hint.msg_order, offer.msg_order)?;
    within("order of receive completions", hint.comp_order, 0)?;
    at_most("receive size", hint.size, answer.size)?;
    at_most("pieces of a reception", hint.iov_limit, answer.iov_limit)?;
    if hint.caps != 0 {
        answer.caps = hint.caps & offer.rx_caps;
    }
    answer.op_flags = hint.op_flags;
    Ok(())
}

#[cfg(test)]
mod tests;
