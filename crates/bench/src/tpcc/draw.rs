//! Draws the requests of TPC-C, which are the inputs of its transactions (clauses 2.4.1 to 2.8.1).

use super::program::Tpcc;
use super::random::{last_name, nurand};
use super::request::{Customers, Line, Request, Who};
use super::rows::DISTRICTS;
use crate::draw::{between, between_u32, percent, weighted};
use fulgurite_base::Prng;

/// The shares of the transactions in percent, in the order of the kinds.
const MIX: [u64; 5] = [45, 43, 4, 4, 4];

impl Tpcc {
    pub(super) fn draw_request(&self, prng: &mut Prng) -> Request {
        let kind = weighted(prng, &MIX);
        let warehouse = between_u32(prng, 1, self.config.warehouses);
        let district = Self::draw_district(prng);
        match kind {
            0 => {
                let customer = self.draw_customer(prng);
                Request::NewOrder { warehouse, district, customer, lines: self.draw_lines(prng, warehouse) }
            }
            1 => {
                let customers = self.draw_payer(prng, warehouse, district);
                let number = self.payments.replace(self.payments.get() + 1);
                let amount = between(prng, 1_00, 5_000_00) as i64;
                Request::Payment { number, warehouse, district, customers, amount }
            }
            2 => Request::OrderStatus {
                customers: Customers { warehouse, district, who: self.draw_who(prng) },
            },
            3 => Request::Delivery { warehouse, carrier: between(prng, 1, 10) as u8 },
            _ => Request::StockLevel { warehouse, district, threshold: between(prng, 10, 20) as i64 },
        }
    }

    fn draw_district(prng: &mut Prng) -> u8 {
        between(prng, 1, DISTRICTS.into()) as u8
    }

    fn draw_customer(&self, prng: &mut Prng) -> u32 {
        nurand(prng, 1_023, self.constants.customer, 1, self.config.customers.into()) as u32
    }

    /// Draws a selection of a customer. Six of ten customers are selected by last name, the others by number.
    fn draw_who(&self, prng: &mut Prng) -> Who {
        if !percent(prng, 60) {
            return Who::Number(self.draw_customer(prng));
        }
        // With fewer than a thousand customers, only the last names with lower numbers exist.
        let most = u64::from(self.config.customers.min(1_000)) - 1;
        Who::Name(last_name(nurand(prng, 255, self.constants.last_run, 0, most)))
    }

    /// Draws the customer of a payment. In fifteen of a hundred payments, the customer belongs to another
    /// warehouse, if there is one.
    fn draw_payer(&self, prng: &mut Prng, warehouse: u32, district: u8) -> Customers {
        let (warehouse, district) = match percent(prng, 15) {
            true => (self.draw_other_warehouse(prng, warehouse), Self::draw_district(prng)),
            false => (warehouse, district),
        };
        Customers { warehouse, district, who: self.draw_who(prng) }
    }

    fn draw_other_warehouse(&self, prng: &mut Prng, home: u32) -> u32 {
        if self.config.warehouses == 1 {
            return home;
        }
        let other = between_u32(prng, 1, self.config.warehouses - 1);
        if other < home { other } else { other + 1 }
    }

    /// Draws the 5 to 15 lines of an order. One line in a hundred is supplied by another warehouse. In one of
    /// a hundred orders, the last item does not exist.
    fn draw_lines(&self, prng: &mut Prng, home: u32) -> Vec<Line> {
        let count = between(prng, 5, 15);
        let wrong = percent(prng, 1);
        let line = |number| {
            let item = nurand(prng, 8_191, self.constants.item, 1, self.config.items.into()) as u32;
            let supplier = if percent(prng, 1) { self.draw_other_warehouse(prng, home) } else { home };
            let quantity = between(prng, 1, 10) as u8;
            let item = if wrong && number == count { self.config.items + 1 } else { item };
            Line { item, supplier, quantity }
        };
        (1..=count).map(line).collect()
    }
}
